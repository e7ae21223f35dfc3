"""Whether a network keeps what it computes is said with each call of it. One that nobody tells so keeps nothing, another that
somebody tells does; of one that goes where it is not seen, nobody knows."""

# file: quiet.py
from torch import nn


class Quiet(nn.Module):
    def __init__(self):
        super().__init__()
        self.maps = []
        self.body = nn.Conv2d(3, 512, 3)

    def forward(self, x, keep):
        x = self.body(x).relu()
        if keep:
            self.maps.append(x)
        return x.mean((2, 3))


# file: loud.py
from torch import nn


class Loud(nn.Module):
    def __init__(self):
        super().__init__()
        self.maps = []
        self.body = nn.Conv2d(3, 512, 3)

    def forward(self, x, keep=False):
        x = self.body(x).relu()
        if keep:
            self.maps.append(x)  # note: GPU101
        return x.mean((2, 3))


# file: handed.py
from torch import nn


class Handed(nn.Module):
    def __init__(self):
        super().__init__()
        self.maps = []
        self.body = nn.Conv2d(3, 512, 3)

    def forward(self, x, keep=False):
        x = self.body(x).relu()
        if keep:
            self.maps.append(x)  # expect: GPU101
        return x.mean((2, 3))


# file: both.py
from handed import Handed
from loud import Loud
from quiet import Quiet
from torch import nn


class Wrapped(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.quiet = Quiet()
        self.loud = Loud().cuda()
        self.handed = Handed()
        self.other = wrap(self.handed)

    def forward(self, x):
        return self.quiet.forward(x, False) + self.loud(x) + self.other(x) + self.handed(x)

    def with_maps(self, x):
        return self.loud(x, keep=True)


# file: main.py
import torch
from both import Wrapped
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData

net = Wrapped(nn.DataParallel).cuda()
opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(FakeData(), batch_size=64):
    loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(net.with_maps(x.cuda()).mean())
