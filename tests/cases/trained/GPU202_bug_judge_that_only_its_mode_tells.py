"""A loss runs a network of a package that is not seen: that it is put into eval mode where it is made says that it is one."""

import torch
from features import Extractor
from torch import nn


class Perceptual(nn.Module):
    def __init__(self):
        super().__init__()
        self.extractor = Extractor().cuda().eval()

    def forward(self, fake, real):
        return nn.functional.l1_loss(self.extractor(fake), self.extractor(real))  # low: GPU202


def train(net, loader):
    distance, optimizer = Perceptual(), torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = distance(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
