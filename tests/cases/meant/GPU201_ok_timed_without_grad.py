"""An inference is timed without a graph, and one on made-up input is only looked at once."""

import time

import torch
from torch import nn

network = nn.Sequential(nn.Conv3d(3, 64, 3), nn.ReLU(), nn.Conv3d(64, 64, 3)).cuda()
clip = torch.randn(8, 3, 16, 112, 112).cuda()

with torch.inference_mode():
    began = time.time()
    for _ in range(1000):
        out = network(clip)
    print("seconds:", time.time() - began)

print(network(clip).shape)
