import torch
from torch import nn


class Reporter:
    def __init__(self):
        self.total_loss = 0.0
        self.batches = 0

    def add(self, loss, n):
        self.total_loss = self.total_loss + loss * n
        self.batches += n

    def mean(self):
        return float(self.total_loss) / max(self.batches, 1)


def train(net, loader, opt, epochs=3):
    rep = Reporter()
    for _ in range(epochs):
        for x, y in loader:
            logit = net(x.cuda()).flatten()
            bce = nn.functional.binary_cross_entropy_with_logits(logit, y.cuda().float())
            bce.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            rep.add(bce, y.size(0))  # expect: GPU101|GPU104
    print(rep.mean())
