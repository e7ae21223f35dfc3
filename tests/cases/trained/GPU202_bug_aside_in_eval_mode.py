"""The network of the task before stands in eval mode beside the one that learns; a hook takes what it is asked for."""

import copy

import torch
import torch.nn.functional as F

features = {}


def take(module, given, result):
    features["before"] = given[0]  # maybe: GPU105


def learn(net, before, loader, optimizer):
    net.train()
    before.eval()
    handle = before.head.register_forward_hook(take)
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        scores = net(x)
        _scores = before(x)  # low: GPU202
        loss = F.cross_entropy(scores, y) + F.mse_loss(scores, features["before"].detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    handle.remove()


def compare(net, past, loader, optimizer):
    net.train()
    past.eval()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        scores = net(x)
        wanted = past(x)  # low: GPU202
        loss = F.cross_entropy(scores, y) + F.mse_loss(scores, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(net, loader):
    for _ in range(5):
        past = copy.deepcopy(net)
        learn(net, past, loader, torch.optim.SGD(net.parameters(), 0.1))
        compare(net, past, loader, torch.optim.SGD(net.parameters(), 0.1))
