import torch
from torch import nn


class Reptile:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()

    def remember(self):
        self.best = {k: v.clone() for k, v in self.net.state_dict().items()}  # low: GPU404

    def restore(self):
        self.net.load_state_dict(self.best)
