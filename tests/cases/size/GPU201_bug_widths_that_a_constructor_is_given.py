"""The widths that an object has by default are small, but who makes it gives it others, which are not seen."""

# file: tables.py
import torch
import torch.nn.functional as F
from torch import nn


class Layers(nn.Module):
    def __init__(self, given, widths, wanted):
        super().__init__()
        self.first = nn.LSTM(given, widths[0])
        self.second = nn.LSTM(widths[0], widths[1])
        self.last = nn.Linear(widths[1], wanted)

    def forward(self, x):
        return self.last(self.second(self.first(x)[0])[0])


class Tables:
    def __init__(self, given=32, widths=(64, 64)):
        self.given = given
        self.widths = widths

    def fit(self, loader, rows, columns):
        net = Layers(self.given, self.widths, columns).cuda()
        opt = torch.optim.Adam(net.parameters())
        for x, y in loader:
            loss = F.mse_loss(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
        self.check(net, rows)
        return self.check(Layers(self.given, self.widths, columns).cuda(), rows)

    def check(self, net, rows):
        net.eval()
        total = 0.0
        for x, y in rows:
            total += F.mse_loss(net(x.cuda()), y.cuda()).item()  # expect: GPU201
        return total
# file: main.py
from data import columns, load, read_widths, rows
from tables import Tables

Tables(widths=read_widths()).fit(load("tables.csv"), rows, columns)
