"""Objects one of whose methods switches grad off, which nothing makes run before the others."""

import torch


class Predictor:
    def __init__(self, net, loader):
        self.net = net.cuda().eval()
        self.loader = loader

    def export(self, path):
        torch.set_grad_enabled(False)
        torch.jit.trace(self.net, torch.rand(1, 3, 224, 224).cuda()).save(path)

    def run(self):
        found = []
        for x, _ in self.loader:
            found.append(self.net(x.cuda()).argmax(1).cpu())  # expect: GPU201
        return found


class Chosen:
    """Only where the caller asks for it."""

    def __init__(self, net, loader, frozen):
        if frozen:
            torch.set_grad_enabled(False)
        self.net = net.cuda().eval()
        self.loader = loader

    def run(self):
        found = []
        for x, _ in self.loader:
            found.append(self.net(x.cuda()).argmax(1).cpu())  # expect: GPU201
        return found
