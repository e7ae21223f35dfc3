import torch
from torch import nn
from torchvision.models import vgg16


class Perceptual(nn.Module):
    """The hook's output is part of the loss of the same step and replaced in the next."""

    def __init__(self):
        super().__init__()
        self.net = vgg16(weights="DEFAULT").features.eval().requires_grad_(False)
        self.out = {}
        for i in (3, 8, 15):
            self.net[i].register_forward_hook(self._grab(i))

    def _grab(self, i):
        def hook(module, inp, out):
            self.out[i] = out

        return hook

    def forward(self, x, y):
        self.net(x)
        fx = dict(self.out)
        self.net(y)
        return sum((fx[i] - self.out[i]).abs().mean() for i in fx)


def train(net, loader, opt):
    crit = Perceptual().cuda()
    for x, y in loader:
        loss = crit(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
