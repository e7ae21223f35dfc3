"""A checkpoint that is an attribute, restored once and there as long as the object."""

import torch
from torch import nn


class Painter:
    def __init__(self, path):
        self.checkpoint = torch.load(path)  # low: GPU403
        self.net = nn.Conv2d(3, 3, 3).cuda()
        self.restore()

    def restore(self):
        self.net.load_state_dict(self.checkpoint["net"])

    @torch.no_grad()
    def paint(self, pictures):
        return [self.net(picture.cuda()).cpu() for picture in pictures]
