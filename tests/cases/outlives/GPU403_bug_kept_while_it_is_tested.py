"""Bare weights of which nothing is seen but that a name keeps them while a network runs: in a helper, in a method of an
object that the script makes, or not at all."""

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


def test(make, loader, attack, options):
    model = make(options.name).cuda()
    tester = Tester(attack)
    if options.todo == "test":
        checkpoint = torch.load(options.path)  # low: GPU403
        model.load_state_dict(checkpoint)
        print(tester.run(model, loader))
