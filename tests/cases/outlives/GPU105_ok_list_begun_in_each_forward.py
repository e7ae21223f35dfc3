"""Hooks that begin a list anew in each forward keep the last one."""

import torch
from torch import nn


class Recorder:
    def __init__(self, net: nn.Module):
        self.net = net
        for layer in net.modules():
            layer.register_forward_hook(self.keep)
            layer.register_full_backward_hook(self.read)

    def keep(self, layer, given, out):
        layer.activations = []
        layer.activations.append(given[0].detach())

    def read(self, layer, grads, given):
        layer.norms = layer.activations.pop().norm() * grads[0].norm()


def train(net, loader, optimizer):
    recorder = Recorder(net.cuda())
    for pictures, labels in loader:
        loss = nn.functional.cross_entropy(recorder.net(pictures.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(net, loader):
    with torch.no_grad():
        return [net(pictures.cuda()).argmax(1).cpu() for pictures, _ in loader]
