"""`volatile=True` of an index that a training step hands to its network: the loss goes backward through what comes out, so that
nobody meant it to be computed without grad, and `no_grad` would stop the training."""

import torch
from torch import nn
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.Embedding(10, 4096)
        self.layer = nn.Linear(4096, 4096)

    def forward(self, task, x):
        return self.layer(x) * self.gates(task)


def train(loader, task, optimizer, criterion):
    net = Net().cuda()
    for x, y in loader:
        index = Variable(torch.LongTensor([task]).cuda(), volatile=True)  # maybe: GPU505
        loss = criterion(net(index, x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
