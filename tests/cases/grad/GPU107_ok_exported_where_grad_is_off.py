"""A module whose running state is only updated by a program that switches grad off for the process at its top."""

# file: synth.py
import torch
from torch import nn


class Synth(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.GRU(2, width, batch_first=True)
        self.out = nn.Linear(width, 64)
        self.register_buffer("state", torch.zeros(1, 1, width))

    def forward(self, pitch):
        return self.out(self.cell(pitch)[0])

    def live(self, pitch, decay=0.9):
        hidden, state = self.cell(pitch, self.state)
        self.state = decay * self.state + (1 - decay) * state
        return self.out(hidden)


# file: train.py
import torch
from synth import Synth


def train(loader):
    net = Synth(512).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for pitch, wave in loader:
        loss = (net(pitch.cuda()) - wave.cuda()).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# file: play.py
import torch
from synth import Synth

torch.set_grad_enabled(False)


class Player(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        self.synth = Synth(512).cuda()
        self.synth.load_state_dict(torch.load(path, map_location="cpu"))

    def forward(self, pitch):
        return self.synth.live(pitch)


def play(path, source):
    player = Player(path).eval()
    for pitch in source:
        yield player(pitch.cuda()).cpu().numpy()
