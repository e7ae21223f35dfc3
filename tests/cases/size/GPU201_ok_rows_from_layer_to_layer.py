"""Evaluations, batch by batch, of networks that hand rows from one linear layer to the next, or only look rows up."""
# file: networks.py
from torch import nn


def units(widths, activation):
    def one(narrow, wide):
        return nn.Sequential(nn.Linear(narrow, wide), activation)

    return [one(narrow, wide) for narrow, wide in zip(widths[:-1], widths[1:])]


class Coder(nn.Module):
    def __init__(self, widths, activation=None):
        super().__init__()
        self.encoder = nn.Sequential(*units(widths, activation or nn.ReLU()))
        self.decoder = nn.Sequential(*units(widths[::-1], activation or nn.ReLU()))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Squeeze(nn.Module):
    def __init__(self, width, code):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(width, 512), nn.Tanh(), nn.Linear(512, 256), nn.Tanh(), nn.Linear(256, code)
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, 256), nn.Tanh(), nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, width)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Factors(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.readers = nn.Embedding(settings.readers, settings.width)
        self.books = nn.Embedding(settings.books, settings.width)
        nn.init.normal_(self.readers.weight, std=0.01)

    def forward(self, readers, books):
        return (self.readers(readers) * self.books(books)).sum(-1)
# file: run.py
import torch
from networks import Coder, Factors, Squeeze
from torch.utils.data import DataLoader


def codes(data, widths):
    coder = Coder(widths).cuda()
    coder.load_state_dict(torch.load("coder.pt", map_location="cpu"))
    coder.eval()
    found = []
    for rows in DataLoader(data, batch_size=256):
        found.append(coder.encoder(rows.cuda()).detach().cpu())  # low: GPU201
    return torch.cat(found)


def errors(data, width):
    squeeze = Squeeze(width, 32).cuda()
    squeeze.load_state_dict(torch.load("squeeze.pt", map_location="cpu"))
    squeeze.eval()
    loader = DataLoader(data, batch_size=256)
    total = 0
    for rows in loader:
        total += (squeeze(rows.cuda()) - rows.cuda()).abs().sum().item()  # low: GPU201
    return total


def ratings(data, settings):
    factors = Factors(settings).cuda()
    factors.load_state_dict(torch.load("factors.pt", map_location="cpu"))
    factors.eval()
    found = []
    for readers, books in DataLoader(data, batch_size=4096):
        found.extend(factors(readers.cuda(), books.cuda()).detach().cpu().numpy())  # low: GPU201
    return found
