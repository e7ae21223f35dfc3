"""The average takes over what it is given as it stands: on the CPU it would not fit the weights any more."""

import torch
from torch import nn


class Average:
    def __init__(self, net):
        self.shadow = {name: p.detach().clone() for name, p in net.named_parameters()}  # maybe: GPU404

    def load_state_dict(self, state):
        self.shadow = state


net = nn.Linear(8, 2).cuda()
average = Average(net)
optimizer = torch.optim.Adam(net.parameters())


def resume(path):
    saved = torch.load(path)  # low: GPU403
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    average.load_state_dict(saved["average"])


def save(path):
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "average": average.shadow}, path)
