import torch
from torch import nn


def train(net, loader, opt):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward(create_graph=True)  # expect: GPU302
        penalty = sum(p.grad.pow(2).sum() for p in net.parameters())
        penalty.backward()
        opt.step()
