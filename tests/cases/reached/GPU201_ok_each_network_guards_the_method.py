"""Which network it is, nobody sees; each that the project has guards the method by that name itself."""
# file: networks.py
import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3))

    def forward(self, x):
        return self.body(x).mean((2, 3))

    @torch.no_grad()
    def predict(self, x):
        return self(x).argmax(1)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 1024, 3), nn.ReLU(), nn.Conv2d(1024, 1024, 3))

    def forward(self, x):
        return self.body(x).mean((2, 3))

    def predict(self, x):
        with torch.no_grad():
            return self(x).argmax(1)


# file: evaluating.py
from networks import Plain, Wide  # noqa: F401


class Evaluator:
    def __init__(self, options):
        self.model = globals()[options.network]().cuda()

    def accuracy(self, loader):
        self.model.eval()
        right = 0
        for x, y in loader:
            right += (self.model.predict(x.cuda()) == y.cuda()).sum().item()
        return right
