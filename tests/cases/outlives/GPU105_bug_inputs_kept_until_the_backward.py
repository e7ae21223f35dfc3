"""Inputs that a forward hook keeps are taken out by the backward hook; a long evaluation without a backward piles them up."""

import torch
from torch import nn


class InputStatistics:
    """Second moments of each layer's inputs, weighted by what comes back."""

    def __init__(self, model: nn.Module):
        self.inputs, self.moments = {}, {}
        for name, layer in model.named_modules():
            if isinstance(layer, nn.Linear):
                self.inputs[name] = []
                layer.register_forward_hook(self._saver(name))
                layer.register_full_backward_hook(self._user(name))

    def _saver(self, name):
        def save(module, args, output):
            self.inputs[name].append(args[0].detach())  # expect: GPU105

        return save

    def _user(self, name):
        def use(module, grad_in, grad_out):
            a = self.inputs[name].pop()
            self.moments[name] = a.flatten(0, -2).t() @ a.flatten(0, -2)

        return use


def train(model: nn.Module, loader, held_out, optimizer):
    model.cuda()
    InputStatistics(model)
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            with torch.no_grad():
                print(sum((model(u.cuda()).argmax(1).cpu() == v).sum().item() for u, v in held_out))
