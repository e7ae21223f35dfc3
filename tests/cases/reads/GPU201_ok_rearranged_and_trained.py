"""What is rearranged goes into the loss: einops keeps the graph."""

import torch
from einops import rearrange
from parts import open_rays
from torch import nn

decoder = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 3, 1)).cuda()
optimizer = torch.optim.Adam(decoder.parameters())

for plane, truth in open_rays("film"):
    colours = rearrange(decoder(plane.cuda()), "1 c h w -> h w c")
    loss = (colours - truth.cuda()).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
