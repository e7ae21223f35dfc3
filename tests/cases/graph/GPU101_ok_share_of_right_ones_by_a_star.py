"""The second value that the loss gives is made by a function which the star brings along: counts of indices."""
# file: tools.py
import torch


def accuracy(output, target, topk=(1,)):
    _, found = output.topk(max(topk), 1, True, True)
    right = found.t().eq(target.view(1, -1).expand_as(found.t()))
    return [right[:k].reshape(-1).float().sum(0, keepdim=True) * (100.0 / len(target)) for k in topk]
# file: margins.py
import torch
import torch.nn.functional as F
from torch import nn

from tools import *


class Margin(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, 192))
        self.ce = nn.CrossEntropyLoss()

    def forward(self, x, label):
        scores = F.linear(F.normalize(x), F.normalize(self.weight)) * 30
        return self.ce(scores, label), accuracy(scores.detach(), label.detach(), topk=(1,))[0]
# file: train.py
import torch

from margins import Margin


def train(encoder, loader, classes):
    encoder.cuda()
    margin = Margin(classes).cuda()
    opt = torch.optim.Adam([*encoder.parameters(), *margin.parameters()])
    top, count = 0, 0
    for x, y in loader:
        opt.zero_grad()
        loss, share = margin(encoder(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        count += len(y)
        top += share
        print(loss.item(), top / count)
