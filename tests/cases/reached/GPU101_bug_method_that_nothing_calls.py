"""An older loop stays in the class when a newer one has taken its place: what it would keep, it keeps for nobody."""

# file: trainer.py
import torch


class Trainer:
    def __init__(self, model, opt):
        self.model = model.cuda()
        self.opt = opt

    def train_and_add_up(self, loader):
        total = 0.0
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss  # low: GPU101
        return total / len(loader)

    def train(self, loader):
        total = 0.0
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss  # expect: GPU101
        return total / len(loader)


# file: main.py
import torch
from data import loaders
from models import Net
from trainer import Trainer

net = Net()
trainer = Trainer(net, torch.optim.Adam(net.parameters()))
for epoch in range(10):
    print(trainer.train(loaders()))
