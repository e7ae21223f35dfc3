"""Eval mode keeps the statistics of batch norm as they are; the loss still trains, in this round or in the next one."""

import torch
import torch.nn.functional as F
from torch import nn


def fine_tune(net: nn.Module, optimizer, x, labels, epochs):
    for epoch in range(epochs):
        net.eval()
        out = net(x.cuda())  # low: GPU505
        loss = F.cross_entropy(out, labels)
        print(epoch, (out.argmax(1) == labels).float().mean().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def close_to_before(net: nn.Module, optimizer, x, labels, epochs):
    kept = None
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x.cuda()), labels)  # low: GPU505
        if kept is not None:
            loss = loss + kept
        loss.backward()
        optimizer.step()
        net.eval()
        kept = F.cross_entropy(net(x.cuda()), labels)  # low: GPU505
        print(kept.item())


def measured(net: nn.Module, optimizer, x, labels, epochs):
    for _ in range(epochs):
        loss = F.cross_entropy(net(x.cuda()), labels)  # low: GPU505
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            print((net(x.cuda()).argmax(1) == labels).sum().item())  # low: GPU505
