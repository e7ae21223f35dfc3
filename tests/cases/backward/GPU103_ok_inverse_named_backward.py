"""A flow's inverse is called `backward`: what it gives is used, as autograd's gives nothing."""

import torch
import torch.nn as nn


class Flow(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = nn.ModuleList(steps)

    def backward(self, z):
        volume = torch.zeros(len(z))
        for step in self.steps[::-1]:
            z, more = step.backward(z)
            volume += more
        return z, volume


class Model(nn.Module):
    def __init__(self, prior, steps):
        super().__init__()
        self.prior, self.flow = prior, Flow(steps)

    def sample(self, count):
        places, _ = self.flow.backward(self.prior.sample((count,)))
        return places
