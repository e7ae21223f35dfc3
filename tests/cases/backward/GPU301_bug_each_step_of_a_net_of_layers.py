"""The whole training of a network of torch's own layers: nobody goes backward twice."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def train(loader):
    for x, y in loader:
        loss = (net(x.cuda()) - y.cuda()).pow(2).mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)  # expect: GPU301
        opt.step()
