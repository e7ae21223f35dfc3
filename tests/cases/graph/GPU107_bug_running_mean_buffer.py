import torch
from torch import nn


class Whiten(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("var", torch.ones(d))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)  # expect: GPU107|GPU101|GPU103
            self.var = 0.9 * self.var + 0.1 * x.var(0)  # expect: GPU107|GPU101|GPU103
        return (x - self.mean) / (self.var + 1e-5).sqrt()


def train(backbone, head, loader, opt, d):
    white = Whiten(d).cuda()
    for x, y in loader:
        loss = nn.functional.cross_entropy(head(white(backbone(x.cuda()))), y.cuda())
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
