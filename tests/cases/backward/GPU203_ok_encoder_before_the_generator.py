"""What the generator is given comes from an encoder that this very step trains: its gradient comes through the generator."""

import torch
from torch import nn


def fit(encoder: nn.Module, painter: nn.Module, judge: nn.Module, loader, score):
    by_judge = torch.optim.Adam([*judge.parameters(), *encoder.parameters()])
    by_painter = torch.optim.Adam(painter.parameters())
    for real in loader:
        code = encoder(real.cuda())
        made = painter(code)  # low: GPU202
        loss = score(judge(made), torch.zeros(len(real), 8).cuda())  # low: GPU505
        by_judge.zero_grad()
        loss.backward()
        by_judge.step()

        by_painter.zero_grad()
        score(judge(painter(torch.randn(8, 8).cuda())), torch.ones(len(real), 8).cuda()).backward()  # low: GPU202, GPU505
        by_painter.step()
