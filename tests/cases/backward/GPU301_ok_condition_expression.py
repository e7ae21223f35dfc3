import torch
from torch import nn


def backward_all(losses):
    for i, loss in enumerate(losses):
        loss.backward(retain_graph=i < len(losses) - 1)


def backward_each(losses, last):
    for l in losses:
        l.backward(retain_graph=l is not last)


def train(net, heads, loader, opt):
    for x, ys in loader:
        z = net(x.cuda())
        losses = [nn.functional.l1_loss(h(z), y.cuda()) for h, y in zip(heads, ys)]
        opt.zero_grad()
        backward_all(losses)
        opt.step()
