"""The loss of a discriminator, made in one file, goes back in another: the sample has no graph, or both are
stepped.
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

    def dis_loss_of_cut(self, x, real):
        made = self.gen(x).detach()  # expect: GPU202
        return F.softplus(self.dis(made)).mean(), F.softplus(-self.dis(real)).mean()

    def dis_loss_of_both(self, x, real):
        made = self.gen(x)
        return F.softplus(self.dis(made)).mean() + F.softplus(-self.dis(real)).mean()


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

        on_made, on_real = pair.dis_loss_of_cut(x, real)
        dis.zero_grad()
        (on_made + on_real).backward()
        steps["dis"].step()

        both = pair.dis_loss_of_both(x, real)
        gen.zero_grad()
        dis.zero_grad()
        both.backward()
        steps["gen"].step()
        steps["dis"].step()
