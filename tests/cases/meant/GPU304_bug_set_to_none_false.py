import torch
from torch import nn


def train(net, loader, epochs):
    net.cuda()
    opt = torch.optim.AdamW(net.parameters())
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad(set_to_none=False)  # expect: GPU304
            nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
            opt.step()
