import torch
from torch import nn
from tqdm import tqdm


def train(model: nn.Module, dl, opt, crit):
    total = 0.0
    losses = []
    bar = tqdm(dl)
    for xb, yb in bar:
        loss = crit(model(xb.cuda()), yb.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()

        loss_value = loss.item()
        total += loss_value
        losses.append(loss_value)
        bar.set_postfix(loss=loss_value)
    return total / len(dl), losses
