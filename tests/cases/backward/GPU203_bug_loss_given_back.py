"""The loss of a discriminator, made in one file, goes back through the generator in another, which steps the discriminator
alone.
"""

# file: nets.py
import torch
import torch.nn.functional as F
from torch import nn


class Pair(nn.Module):
    def __init__(self, gen, dis):
        super().__init__()
        self.gen, self.dis = gen, dis

    def loss_of_gen(self, x):
        return F.softplus(-self.dis(self.gen(x))).mean()

    def dis_loss(self, x, real):
        made = self.gen(x)[:, :, : real.shape[-1]]
        made = made.clamp(-1, 1)
        on_real, on_made = self.dis(real), self.dis(made)  # expect: GPU203
        return F.softplus(on_made).mean(), F.softplus(-on_real).mean()


# file: train.py
import torch
from nets import Pair


def train(gen, dis, loader):
    pair = Pair(gen.cuda(), dis.cuda())
    steps = {"gen": torch.optim.Adam(gen.parameters()), "dis": torch.optim.Adam(dis.parameters())}
    for x, real in loader:
        x, real = x.cuda(), real.cuda()
        gen.zero_grad()
        loss = pair.loss_of_gen(x)
        loss.backward()
        steps["gen"].step()

        on_made, on_real = pair.dis_loss(x, real)
        loss = on_made + on_real
        dis.zero_grad()
        loss.backward()
        steps["dis"].step()
