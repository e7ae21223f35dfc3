"""Networks whose own forward says whether it builds a graph."""

import torch
from torch import nn
from torchvision import models


class Score(nn.Module):
    def __init__(self, as_loss=False):
        super().__init__()
        self.as_loss = as_loss
        self.net = models.resnet18(weights="DEFAULT").cuda().eval()

    def forward(self, x):
        with torch.set_grad_enabled(self.as_loss):
            return self.net(x)


class Quiet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = models.resnet18(weights="DEFAULT").cuda()

    def forward(self, x):
        with torch.no_grad():
            found = self.net(x)
        return found.softmax(1)


def rate(paths, read):
    score = Score()
    score.eval()
    marks = []
    for path in paths:
        marks.append(score(read(path).cuda()).mean().item())
    return marks


def label(loader):
    quiet = Quiet()
    quiet.eval()
    return [quiet(x.cuda()).argmax(1).cpu().numpy() for x in loader]
