"""The judge stands in eval mode beside the network that learns, whose gradient comes through it."""

import torch
import torch.nn.functional as F


def deceive(net, judge, loader, optimizer):
    net.train()
    judge.eval()
    for x, y in loader:
        changed = net(x.cuda())
        loss = F.cross_entropy(judge(changed), y.cuda())  # low: GPU202
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(net, judge, loader):
    deceive(net, judge, loader, torch.optim.SGD(net.parameters(), 0.1))
