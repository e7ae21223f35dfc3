import torch
import torch.nn.functional as F


def train_step(model, opt, micro_batches):
    opt.zero_grad()
    losses = []
    for mb in micro_batches:
        pred = model(mb["x"].cuda())
        losses.append(F.mse_loss(pred, mb["y"].cuda()))  # expect: GPU303@a
    loss = torch.stack(losses).mean()  # expect: GPU303@a
    loss.backward()
    opt.step()
    return loss.item()


def train(model, opt, groups):
    for g in groups:
        print(train_step(model, opt, g))
