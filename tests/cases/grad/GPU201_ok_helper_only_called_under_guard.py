import torch
from torch import nn


class Evaluator:
    def __init__(self, net: nn.Module, loader):
        self.net, self.loader = net.cuda(), loader

    def _scores(self, x):
        return self.net(x.cuda()).softmax(-1)

    def _all(self):
        self.net.eval()
        return [self._scores(x).argmax(-1).cpu() for x, _ in self.loader]

    @torch.no_grad()
    def predictions(self):
        return torch.cat(self._all())

    def accuracy(self):
        with torch.inference_mode():
            y = torch.cat([y for _, y in self.loader])
            return (torch.cat(self._all()) == y).float().mean().item()
