"""Names that are given something else before the peak: nothing is held by them."""

import torch
from torch import nn
from torch.nn import functional as F


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.main = nn.Conv2d(64, 21, 1)
        self.side = nn.Conv2d(64, 21, 1)

    def forward(self, images):
        features = self.stem(images)
        return self.main(features), self.side(features), features.mean()


def segment(loader, optimizer):
    net = Segmenter().cuda()
    for images, labels in loader:
        main, _, _ = net(images.cuda())
        loss = F.cross_entropy(main, labels.cuda())
        del main
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def count(loader):
    net = Segmenter().cuda()
    with torch.no_grad():
        for images, labels in loader:
            main, _, _ = net(images.cuda())
            main = main.argmax(1)
            print((main.cpu() == labels).sum())


def segment_twice(loader, optimizer):
    net = Segmenter().cuda()
    for images, labels in loader:
        labels = labels.cuda()
        main, _, penalty = net(images.cuda())
        main = main.log_softmax(1)
        loss = F.nll_loss(main, labels) + penalty
        del main
        for _ in range(2):
            labels = labels + 1
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
