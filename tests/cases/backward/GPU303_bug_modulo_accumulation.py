import torch
from torch import nn


class Trainer:
    def __init__(self, net, opt, accum, device):
        self.net, self.opt, self.accum, self.device = net.to(device), opt, accum, device
        self.crit = nn.MSELoss()

    def epoch(self, loader):
        loss = 0
        for i, (x, y) in enumerate(loader):
            pred = self.net(x.to(self.device))
            loss += self.crit(pred, y.to(self.device)) / self.accum  # expect: GPU303
            if (i + 1) % self.accum == 0:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                loss = 0

    def epoch_of_fours(self, loader):
        loss = 0
        every = 4
        for i, (x, y) in enumerate(loader):
            pred = self.net(x.to(self.device))
            loss += self.crit(pred, y.to(self.device)) / every  # expect: GPU303
            if (i + 1) % every == 0:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                loss = 0

    def epoch_by_an_option(self, loader, options):
        loss = 0
        every, most = options.get("every", 1), options["most"]
        for i, (x, y) in enumerate(loader):
            pred = self.net(x.to(self.device))
            loss += self.crit(pred, y.to(self.device)) / every  # low: GPU303
            if (i + 1) % every == 0 or i == most:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                loss = 0
