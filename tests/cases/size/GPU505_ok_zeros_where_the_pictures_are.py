"""Zeros and counts that a layer makes on the device of what it is given: nothing is moved."""

import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 3, padding=1)

    def forward(self, pictures, lengths):
        out = self.conv(pictures)
        mask = torch.zeros(out.size(), dtype=torch.bool, device=out.device)
        steps = torch.arange(out.size(3), device=lengths.device)
        mask |= (steps >= lengths[:, None])[:, None, None]
        return out.masked_fill(mask, 0).to(pictures.device)


net = Masked().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for pictures, lengths in torch.utils.data.DataLoader([(torch.zeros(3, 64, 64), 3)] * 64, 8):
    optimizer.zero_grad()
    net(pictures.cuda(), lengths.cuda()).mean().backward()
    optimizer.step()
