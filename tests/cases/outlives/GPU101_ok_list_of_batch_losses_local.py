import torch
import torch.nn.functional as F


def distributed_step(model, shards, opt):
    losses = []
    opt.zero_grad()
    for x, y in shards:
        loss = F.cross_entropy(model(x.cuda()), y.cuda()) / len(shards)
        loss.backward()
        losses.append(loss.detach())
    opt.step()
    return torch.stack(losses).sum()


def train(model, groups, opt):
    for i, shards in enumerate(groups):
        mean = distributed_step(model, shards, opt)
        if i % 50 == 0:
            print(i, mean.item())
