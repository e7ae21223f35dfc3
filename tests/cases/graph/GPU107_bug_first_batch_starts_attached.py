import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(features))
        self.running = torch.zeros(features)
        self.batches = 0

    def forward(self, x):
        if not self.training:
            return x / self.running * self.gain
        mean = torch.mean(x, dim=0)
        self.batches += 1
        if self.batches == 1:
            self.running = mean
        else:
            self.running = 0.9 * self.running + 0.1 * mean  # expect: GPU107
        return x / mean * self.gain


def train(loader):
    net = nn.Sequential(nn.Linear(8, 8), Norm(8)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
