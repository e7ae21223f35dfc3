import torch
from torch import nn


def train(model, loader, opt):
    losses = []
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())  # maybe: GPU102
    return torch.stack(losses).cpu().tolist()
