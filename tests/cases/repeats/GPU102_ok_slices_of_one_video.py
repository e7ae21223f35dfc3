"""Clips of one video and rays of one picture, which are on the device as a whole."""

import math

import torch
from torch import nn


class Recogniser:
    def __init__(self, net: nn.Module, device="cuda"):
        self.net, self.device = net.to(device).eval(), device

    def __call__(self, clips):
        return self.features(clips.to(self.device)).data.cpu().numpy()

    @torch.no_grad()
    def features(self, clips, most=4):
        found = []
        for i in range(math.ceil(clips.size(0) / most)):
            found.append(self.net(clips[i * most : (i + 1) * most])[0])
        return torch.cat(found, dim=0)


@torch.no_grad()
def render(net: nn.Module, origins, directions, chunk):
    origins, directions = origins.cuda(), directions.cuda()
    parts = [
        net.cuda()(o, d) for o, d in zip(origins.split(chunk, 0), directions.split(chunk, 0))
    ]
    return torch.cat(parts).clamp(0, 1).cpu().numpy()
