"""What an adversary sees of the real is matched, and the adversary is stepped by that too."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Judge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Conv2d(3, width, 3), nn.Conv2d(width, width, 3)])

    def forward(self, x):
        kept = []
        for block in self.blocks:
            x = block(x)
            kept.append(x)
        return kept


def restorer(width):
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.ConvTranspose2d(width, 3, 3))


def together(loader, width):
    gen, judge = restorer(width).cuda(), Judge(width).cuda()
    g_opt, d_opt = optim.Adam(gen.parameters(), 1e-4), optim.Adam(judge.parameters(), 1e-4)
    for low, high in loader:
        ours, theirs = judge(gen(low.cuda())), judge(high.cuda())  # both are stepped after this backward
        loss = F.l1_loss(ours[-1], theirs[-1])
        g_opt.zero_grad()
        d_opt.zero_grad()
        loss.backward()
        g_opt.step()
        d_opt.step()
