import torch
from torch import nn


def train(net, loader, opt):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        torch.cuda.synchronize()  # expect: GPU503
    return loss.item()
