"""Who chooses the phase calls what calls the loop: with grad in one program, and without in the other."""

import torch
from torch import nn


def rounds(net, loader, optimizer, training):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())  # expect: GPU201
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item())


def epoch(net, loader, optimizer, training):
    rounds(net, loader, optimizer, training)
    print("an epoch")


def main(train, valid):
    model = nn.Linear(4096, 2048).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        epoch(model, train, optimizer, True)
        epoch(model, valid, optimizer, False)


def guarded_rounds(net, loader, optimizer, training):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(loss.item())


def guarded(net, loader, optimizer, training):
    with torch.set_grad_enabled(training):
        guarded_rounds(net, loader, optimizer, training)


def main_with_guard(train, valid):
    model = nn.Linear(4096, 2048).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        guarded(model, train, optimizer, True)
        guarded(model, valid, optimizer, False)
