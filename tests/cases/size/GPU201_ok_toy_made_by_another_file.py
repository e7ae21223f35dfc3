"""A few small layers are made by another file, of settings that a function gives, and handed to who evaluates, as a whole and
by one of its parts."""

# file: engine.py
import torch


class Engine:
    def __init__(self, model, loader, device):
        self.model = model.to(device)
        self.loader = loader
        self.device = device

    def test(self):
        self.model.eval()
        right = 0
        for x, y in self.loader:
            right += (self.model(x.to(self.device)).argmax(1).cpu() == y).sum().item()  # low: GPU201
        return right


def score(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model.encoder(x.cuda()).argmax(1).cpu() == y).sum().item()  # low: GPU201
    return right
# file: settings.py
from types import SimpleNamespace


def defaults():
    args = SimpleNamespace(width=64)
    args.layers = 3
    args.classes = None
    return args
# file: nets.py
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, layers, classes):
        super().__init__()
        self.rnn = nn.LSTM(12, width, layers)
        self.top = nn.Linear(width, classes)

    def forward(self, x):
        return self.top(self.rnn(x)[0][-1])


class Reader(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x):
        return self.encoder(x)
# file: main.py
import engine
import settings
from data import read_names, loader
from nets import Encoder, Reader

args = settings.defaults()
args.classes = len(read_names())
model = Reader(Encoder(args.width, args.layers, args.classes)).cuda()
runner = engine.Engine(model, loader, "cuda")
print(runner.test(), engine.score(model, loader))
