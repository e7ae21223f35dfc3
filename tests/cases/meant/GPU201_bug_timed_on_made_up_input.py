"""An inference is timed on made-up input: the graph is made as well, in each round."""

import time

import torch
from torch import nn

network = nn.Sequential(nn.Conv3d(3, 64, 3), nn.ReLU(), nn.Conv3d(64, 64, 3)).cuda()
clip = torch.randn(8, 3, 16, 112, 112).cuda()

began = time.time()
for i in range(1000):
    out = network(clip)  # low: GPU201
    print("seconds a round:", (time.time() - began) / (i + 1))


def shape_ok():
    for width in (64, 112, 224):
        print(network(torch.randn(1, 3, 16, width, width).cuda()).shape)
