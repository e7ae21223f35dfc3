"""A context is chosen by what the object was made with: grad is on where somebody trains through the step."""

import torch
from torch import nn


class Stepper:
    def __init__(self, net, trains=False):
        self.net = net
        self.trains = trains
        self.net.eval()

    def step(self, x):
        with_grad = self.trains
        chosen = torch.enable_grad() if with_grad else torch.no_grad()
        with chosen:
            scores = self.net(x)
        return torch.softmax(scores, -1)


def run(loader, trains):
    net = nn.Sequential(nn.Linear(2000, 2000), nn.Linear(2000, 2000)).cuda()
    stepper = Stepper(net, trains)
    for x in loader:
        print(stepper.step(x.cuda()).mean().item())
