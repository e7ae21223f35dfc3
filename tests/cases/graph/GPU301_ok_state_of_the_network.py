"""The network feeds its state back into itself: each backward goes through the graphs of the batches before."""

import torch
from torch import nn


class Prices(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(15, 60, batch_first=True)
        self.out = nn.Linear(60, 1)
        self.state = None

    def forward(self, x):
        y, self.state = self.rnn(x, self.state)  # maybe: GPU103
        return self.out(y)


def train(loader):
    net = Prices().cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
