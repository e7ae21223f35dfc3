"""The cache is emptied after each step over sparse points, of which no two batches have the same number."""

import MinkowskiEngine as ME
import torch
from torch import nn


def train(net: nn.Module, loader, optimizer, criterion):
    for coordinates, features, labels in loader:
        points = ME.SparseTensor(features.cuda(), coordinates=coordinates.cuda())
        loss = criterion(net(points).F, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # low: GPU501
