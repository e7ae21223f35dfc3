"""The caller, in another file, says which phase it is: the flag switches the backward off, and grad with it."""
# file: phases.py
import torch
from torch import nn

from loop import epoch


def main(train, valid):
    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        model.train()
        epoch(model, train, optimizer, True)
        model.eval()
        epoch(model, valid, optimizer, False)
# file: loop.py
import torch
from torch import nn


def epoch(net, loader, optimizer, training):
    total = 0.0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total
