"""No network runs while a name keeps the weights, or they are few."""

import torch
from torch import nn


class Tester:
    def __init__(self, attack):
        self.attack = attack

    def run(self, model, loader):
        right = 0
        for x, y in loader:
            x = self.attack(model, x.cuda())
            with torch.no_grad():
                right += (model(x).argmax(1).cpu() == y).sum().item()
        return right

    def describe(self):
        print("tested with", self.attack)


def handed_on(make, attack, options):
    model = make(options.name).cuda()
    tester = Tester(attack)
    checkpoint = torch.load(options.path)
    model.load_state_dict(checkpoint)
    tester.describe()
    return model


def small(loader, attack, options):
    model = nn.Linear(8, 2).cuda()
    tester = Tester(attack)
    checkpoint = torch.load(options.path)
    model.load_state_dict(checkpoint)
    print(tester.run(model, loader))
