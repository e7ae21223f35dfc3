"""An average of the weights that a helper is handed, which runs it."""

import copy

import torch
from torch.nn import functional as F
from torchvision.models import vit_l_16


def blend(source, target, decay):
    for given, own in zip(source.parameters(), target.parameters()):
        own.data.mul_(decay).add_(given.data, alpha=1 - decay)


@torch.no_grad()
def accuracy(judge, loader):
    hits = 0
    for x, y in loader:
        hits += (judge(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return hits


def train(loader, held_out, epochs):
    net = vit_l_16().to("cuda")
    mean = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            blend(net, mean, 0.999)
        print(accuracy(mean, held_out))
    return net
