"""Who chooses the phase calls what calls the loop and leaves grad on."""

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
