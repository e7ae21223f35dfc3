import torch
from torch.nn import functional as F


class Runner:
    def __init__(self, net, loaders, opt):
        self.net = net.cuda()
        self.train_loader, self.val_loader = loaders
        self.opt = opt

    def _train(self):
        self.net.train()
        for x, y in self.train_loader:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x.cuda()), y.cuda()).backward()
            self.opt.step()

    def _validate(self):
        # switches off gradients and dropout
        self.net.eval()
        ious = []
        for x, y in self.val_loader:
            pred = self.net.forward(x.cuda()).argmax(1)  # expect: GPU201  # maybe: GPU204
            y = y.cuda()
            inter = ((pred == 1) & (y == 1)).sum()
            union = ((pred == 1) | (y == 1)).sum()
            ious.append((inter / union.clamp(min=1)).item())
        return sum(ious) / len(ious)

    def run(self, n):
        for _ in range(n):
            self._train()
            print(self._validate())
