"""The decorator of the class does nothing, and only one of its two forwards has a guard of its own."""

import torch
from torch import nn


@torch.no_grad()  # expect: GPU204@d
class Keypoints:  # expect: GPU204@d
    def __init__(self, net: nn.Module):
        self.net = net.cuda().eval()

    def run(self, pictures):
        with torch.no_grad():
            maps = self.net(pictures.cuda())
        return maps.cpu().numpy()

    def first(self, pictures):
        return self.net(pictures[:1].cuda()).detach().cpu().numpy()  # note: GPU201
