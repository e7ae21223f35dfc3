"""The base class is a library's. The evaluation of another class below it switches grad off by itself, so that the library does
not; in the subclass somebody has forgotten that."""

import torch
from epochs import Epoch


class Evaluation(Epoch):
    def __init__(self, net: torch.nn.Module, loader):
        super().__init__()
        self.net, self.loader = net.cuda(), loader

    @torch.no_grad()
    def _run(self):
        self.net.eval()
        for x, y in self.loader:
            self.meter.add(self.net(x.cuda()).argmax(1), y)


class Inference(Evaluation):
    def _run(self):
        self.net.eval()
        right = 0
        for x, y in self.loader:
            out = self.net(x.cuda())  # expect: GPU201
            right += (out.argmax(1).cpu() == y).sum().item()
        return right


class Validation(Epoch):
    def __init__(self, net: torch.nn.Module, loader):
        super().__init__()
        self.net, self.loader = net.cuda(), loader

    def _run(self):
        self.net.eval()
        right = 0
        for x, y in self.loader:
            out = self.net(x.cuda())  # expect: GPU201
            right += (out.argmax(1).cpu() == y).sum().item()
        return right
