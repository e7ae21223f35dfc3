"""Programs that want the gradient of what a network is given, where somebody uses those of the weights as well."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torchvision.models import resnet50


def for_free(loader):
    """One backward for the picture and the weights."""
    net = resnet50().cuda()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    delta = torch.zeros(32, 3, 224, 224, device="cuda", requires_grad=True)
    for x, y in loader:
        for _ in range(4):
            loss = F.cross_entropy(net(x.cuda() + delta), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            delta.data += 0.1 * delta.grad.sign()
            delta.grad.zero_()
            optimizer.step()


def both_are_stepped(loader):
    """The clean picture trains as well: nothing is cleared between the two."""
    net = resnet50().cuda()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.cuda().requires_grad_(True), y.cuda()
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        F.cross_entropy(net((x + 0.1 * x.grad.sign()).detach()), y).backward()
        optimizer.step()


def in_parts(loader, steps=4):
    net = resnet50().cuda()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for number, (x, y) in enumerate(loader):
        x = x.cuda().requires_grad_(True)
        F.cross_entropy(net(x), y.cuda()).backward()
        print(x.grad.norm())
        if (number + 1) % steps == 0:
            optimizer.step()
            optimizer.zero_grad()


def read(loader):
    """How much each weight matters, and each picture."""
    net = resnet50(weights="DEFAULT").cuda()
    total = {}
    for x, y in loader:
        net.zero_grad()
        x = x.cuda().requires_grad_(True)
        F.cross_entropy(net(x), y.cuda()).backward()
        for name, weight in net.named_parameters():
            total[name] = total.get(name, 0) + weight.grad**2
        print(x.grad.norm())
    return total


def stepped_by_another(loader, net: nn.Module, optimizer):
    """Of which it is not seen what it has."""
    for x, y in loader:
        x = x.cuda().requires_grad_(True)
        optimizer.zero_grad()
        F.cross_entropy(net(x), y.cuda()).backward()
        print(x.grad.norm())
        optimizer.step()
