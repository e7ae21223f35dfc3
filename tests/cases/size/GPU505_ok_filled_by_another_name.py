"""Data of the batch are put into it by a name for a part of it: it is no tensor that could be made on the device."""

import torch
from torch import nn


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 8, 3)

    def forward(self, pictures):
        b, c, h, w = pictures.shape
        copied = torch.zeros(b, c, h, w)
        first = copied[0]
        first.copy_(pictures[0])
        return self.layer(copied.cuda())
