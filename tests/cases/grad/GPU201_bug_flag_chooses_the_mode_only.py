"""The flag chooses training mode or not, and whether there is a step; grad is on in either case."""

from functools import partial

import torch
from torch import nn


def one_pass(net, loader, device, optimizer=None, train=False):
    net.train(train)
    hits, rows = 0, 0
    for graph, label in loader:
        graph, label = graph.to(device), label.to(device)
        scores = net(graph)  # expect: GPU201@t
        if train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, label).backward()
            optimizer.step()
        hits += (scores.argmax(-1) == label).sum().item()
        rows += len(label)
    return hits / rows


test_pass = partial(one_pass, train=False)


def main(build, train_loader, test_loader):
    device = torch.device("cuda:0")
    net = build().to(device)
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    for epoch in range(200):
        print(epoch, one_pass(net, train_loader, device, optimizer, train=True))
        print(epoch, test_pass(net, test_loader, device))  # expect: GPU201@t
