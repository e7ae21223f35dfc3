"""Weights that are cloned one by one, wait on the GPU, and are copied back one by one."""

import torch
from torch.nn import functional as F
from torchvision.models import resnet50


class Average:
    def __init__(self, parameters, decay):
        self.decay = decay
        self.shadow = [p.clone().detach() for p in parameters if p.requires_grad]

    def update(self, parameters):
        with torch.no_grad():
            for mine, theirs in zip(self.shadow, parameters):
                mine.sub_((1 - self.decay) * (mine - theirs))

    def lend(self, parameters):
        self.lent = [p.clone() for p in parameters]  # expect: GPU404
        for mine, theirs in zip(self.shadow, parameters):
            theirs.data.copy_(mine.data)

    def take_back(self, parameters):
        for own, p in zip(self.lent, parameters):
            p.data.copy_(own.data)


def step(net, optimizer, images, labels):
    loss = F.cross_entropy(net(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def with_average(loader, score):
    net = resnet50().cuda()
    average = Average(net.parameters(), 0.999)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(10):
        for images, labels in loader:
            step(net, optimizer, images, labels)
            average.update(net.parameters())
        average.lend(net.parameters())
        score(net)
        average.take_back(net.parameters())


def best_on_host(loader, score):
    net = resnet50().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best, best_score = [], 0.0
    for epoch in range(10):
        for images, labels in loader:
            step(net, optimizer, images, labels)
        if score(net) > best_score:
            best = [p.detach().cpu().clone() for p in net.parameters()]
    for p, kept in zip(net.parameters(), best):
        p.data.copy_(kept)
    return net


def sharpness(loader, directions):
    net = resnet50().cuda()
    for images, labels in loader:
        before = [p.data.clone() for p in net.parameters()]  # low: GPU404
        for p, direction in zip(net.parameters(), directions):
            p.data.add_(direction, alpha=0.01)
        loss = F.cross_entropy(net(images.cuda()), labels.cuda())
        torch.autograd.grad(loss, net.parameters())
        for p, own in zip(net.parameters(), before):
            p.data.copy_(own)
