"""An average of the weights, kept as plain tensors and updated in place: each update takes the parameters' graph in."""

import torch
from torch import nn


class WeightAverage:
    def __init__(self, net: nn.Module, decay=0.9995):
        self.decay = decay
        self.net = net
        self.mean = [p.detach().clone() for p in net.parameters()]

    def update(self):
        for m, p in zip(self.mean, self.net.parameters()):
            m.mul_(self.decay).add_(p, alpha=1 - self.decay)  # expect: GPU107


def main(build, loader, steps):
    net = build().cuda()
    average = WeightAverage(net)
    opt = torch.optim.Adam(net.parameters(), 2e-4)
    for _, x in zip(range(steps), loader):
        loss = net(x.cuda()).logsumexp(-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update()
    torch.save(average.mean, "average.pt")
