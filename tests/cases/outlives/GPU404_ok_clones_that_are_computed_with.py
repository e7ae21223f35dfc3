"""Clones of weights that the program computes with on the GPU, or keeps on the host."""

import torch
from torch.nn import functional as F
from torchvision.models import resnet50


def step(net, optimizer, images, labels):
    loss = F.cross_entropy(net(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def anchored(loader, strength):
    net = resnet50().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    anchor = [p.detach().clone() for p in net.parameters()]
    for images, labels in loader:
        loss = F.cross_entropy(net(images.cuda()), labels.cuda())
        loss = loss + strength * sum((p - own).pow(2).sum() for p, own in zip(net.parameters(), anchor))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def best_of(loader, score):
    net = resnet50().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best = []
    for epoch in range(10):
        for images, labels in loader:
            step(net, optimizer, images, labels)
        if score(net) > 0.5:
            best = [p.detach().cpu().clone() for p in net.parameters()]
    for p, kept in zip(net.parameters(), best):
        p.data.copy_(kept)
    return net
