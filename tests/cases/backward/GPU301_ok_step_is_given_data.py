import torch
from torch import nn

net = nn.Linear(4, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def step(x, y):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)  # low: GPU301
    opt.step()


def train(loader):
    for x, y in loader:
        step(x, y.detach())
