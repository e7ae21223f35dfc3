"""What a hook keeps is read for a loss, and what is cut beside it is something else: a gradient may be wanted."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.neck = nn.Conv2d(3, 256, 3, padding=1)
        self.head = nn.Conv2d(256, 3, 3, padding=1)

    def forward(self, x):
        return self.head(self.neck(x).relu())


class Distilled:
    def __init__(self, readout):
        self.net = Net().cuda()
        self.readout = readout.cuda()
        self.kept = None
        self.handle = self.net.neck.register_forward_hook(self.keep)

    def keep(self, module, given, output):
        self.kept = output.clone()  # low: GPU105

    def step(self, x):
        out = self.net(x.cuda())
        wanted = F.interpolate(x.cuda(), size=64).detach()
        match = F.mse_loss(self.kept, self.readout(wanted))
        return F.mse_loss(out, wanted) + match, match.item()

    def close(self):
        self.handle.remove()


def fit(distilled, batches, opt):
    for x in batches:
        loss, shown = distilled.step(x)
        print(shown)
        opt.zero_grad()
        loss.backward()
        opt.step()
