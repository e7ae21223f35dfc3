"""A tensor is made on the device that settings in stars name: nothing is brought there."""
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self, width, **where):
        super().__init__()
        self.where = where
        self.layer = nn.Linear(width, width)

    def forward(self, x, **where):
        mask = torch.ones(x.shape, **where)
        return self.layer(x) * mask.to("cuda")


def train(loader):
    net = Masked(512).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x in loader:
        loss = net(x.cuda(), device="cuda").mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
