"""The slow weights take the fast ones in, with grad on, and nothing cuts them: the chain grows by a link a step."""

import torch
from torch import nn


class Slow:
    def __init__(self, fast: nn.Module, rate=0.005):
        self.fast, self.rate = fast, rate
        self.slow = [p.detach().clone() for p in fast.parameters()]

    def follow(self):
        for k, param in enumerate(self.fast.parameters()):
            target = self.slow[k]
            self.slow[k] = target * (1.0 - self.rate) + param * self.rate  # expect: GPU107


def train(net: nn.Module, loader):
    follower = Slow(net.cuda())
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        follower.follow()
    torch.save([s.detach().cpu() for s in follower.slow], "slow.pt")
