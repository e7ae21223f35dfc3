# file: helpers.py
"""An average of the weights is kept up to date in every step, and never run, saved or put back."""


def blend(source, target, decay):
    old, new = target.state_dict(), source.state_dict()
    for key in new.keys():
        old[key].data.copy_(old[key].data * decay + new[key].data * (1 - decay))


def blend_weights(source, target, decay):
    for given, own in zip(source.parameters(), target.parameters()):
        own.data.mul_(decay).add_(given.data, alpha=1 - decay)


def take_over(source, target):
    for given, own in zip(source.parameters(), target.parameters()):
        own.data.copy_(given.data)


# file: main.py
import copy

import torch
from helpers import blend, blend_weights, take_over
from torch.nn import functional as F
from torchvision.models import vit_l_16


def fit(net, mean, loader, optimizer, smooth):
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth(net, mean, 0.999)


def train(loader, epochs):
    net = vit_l_16().to("cuda")
    mean = copy.deepcopy(net)  # expect: GPU404
    for p in mean.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            blend(net, mean, 0.999)
            blend_weights(net, mean, 0.9)
    return net


def train_ok_evaluates_it(loader, held_out):
    net = vit_l_16().to("cuda")
    mean = copy.deepcopy(net)
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        blend(net, mean, 0.999)
    with torch.no_grad():
        return sum(mean(x.cuda()).argmax(1).sum().item() for x in held_out)


def train_ok_saves_it(loader):
    net = vit_l_16().to("cuda")
    mean = copy.deepcopy(net)
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        blend_weights(net, mean, 0.999)
    torch.save(mean.state_dict(), "mean.pt")


def train_ok_puts_it_back(loader):
    net = vit_l_16().to("cuda")
    start = copy.deepcopy(net)
    optimizer = torch.optim.AdamW(net.parameters())
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not torch.isfinite(loss):
            take_over(start, net)


def train_ok_handed_to_who_is_not_seen(loader, optimizer, smooth):
    net = vit_l_16().to("cuda")
    mean = copy.deepcopy(net)
    fit(net, mean, loader, optimizer, smooth)
