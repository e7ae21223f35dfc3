# The criterion of another file takes the argmax of the scores: what it gives comes of the picture, and has no graph.
# file: edges.py
import torch
import torch.nn as nn
import torch.nn.functional as F


class EdgeLoss(nn.Module):
    def __init__(self, weight=1.0):
        super().__init__()
        self.scale = weight

    def forward(self, scores, gray):
        chosen = scores.argmax(1, keepdim=True).float()
        kernel = torch.ones(1, 1, 3, 3, device=chosen.device)
        both = F.conv2d(gray, kernel) * F.conv2d(chosen, kernel)
        total = torch.sum(both) / torch.sum(chosen)
        total = total if total > 0 else 0
        return total


# file: meters.py
class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


# file: train.py
import torch
import torch.nn as nn
from edges import EdgeLoss
from meters import Meter


class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net.cuda(), loader
        self.weight = 0.1
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def train(self):
        edge_criterion = EdgeLoss().cuda()
        criterion = nn.CrossEntropyLoss().cuda()
        for _ in range(10):
            self.epoch(edge_criterion, criterion)

    def epoch(self, edge_criterion, criterion):
        edges = Meter()
        for x, gray, y in self.loader:
            scores = self.net(x.cuda())
            edge = edge_criterion(scores, gray.cuda())
            loss = criterion(scores, y.cuda()) + self.weight * edge
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            edges.update(self.weight * edge, len(x))
        return edges.sum
