import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
            with torch.no_grad():
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean


def train(norm: Norm, net, loader, opt):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(norm(x.cuda())), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
