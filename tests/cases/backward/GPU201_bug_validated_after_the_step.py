"""Epochs of training, after each of which the network is looked at in eval mode."""

import torch
import torch.nn.functional as F
from torch import nn


def epochs_of_batches(net: nn.Module, optimizer, loader, x_test, epochs):
    for _ in range(epochs):
        net.train()
        for x, labels in loader:
            loss = F.cross_entropy(net(x.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        found = net(x_test.cuda())  # note: GPU201  # low: GPU505
        kept = found.cpu().detach().numpy()
        print(kept.mean())
