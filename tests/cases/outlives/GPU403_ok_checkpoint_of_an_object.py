"""The same, let go of when it is restored."""

import torch
from torch import nn


class Painter:
    def __init__(self, path):
        self.checkpoint = torch.load(path)
        self.net = nn.Conv2d(3, 3, 3).cuda()
        self.net.load_state_dict(self.checkpoint["net"])
        self.checkpoint = None

    @torch.no_grad()
    def paint(self, pictures):
        return [self.net(picture.cuda()).cpu() for picture in pictures]
