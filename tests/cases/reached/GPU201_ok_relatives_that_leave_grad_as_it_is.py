"""The base class is a library's, and nothing in the file says whether it calls this with grad switched off."""

import torch
from epochs import Epoch


class Training(Epoch):
    def _run(self):
        self.net.train()
        for x, y in self.loader:
            loss = torch.nn.functional.cross_entropy(self.net(x.cuda()), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


class Validation(Epoch):
    def __init__(self, net: torch.nn.Module, loader):
        super().__init__()
        self.net, self.loader = net.cuda(), loader

    def _run(self):
        self.net.eval()
        right = 0
        for x, y in self.loader:
            out = self.net(x.cuda())  # low: GPU201
            right += (out.argmax(1).cpu() == y).sum().item()
        return right
