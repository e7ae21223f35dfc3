"""The sample is made where it is judged: detached there, and never the judge's own graph with it."""

import torch
from torch import nn


def fit(painter: nn.Module, judge: nn.Module, loader, score):
    by_judge = torch.optim.Adam(judge.parameters())
    by_painter = torch.optim.Adam(painter.parameters())
    for real in loader:
        noise = torch.randn(len(real), 16, device="cuda")
        judge.zero_grad()
        wrong = score(judge(painter(noise)), torch.zeros(len(real), 8).cuda())  # expect: GPU203  # low: GPU505
        right = score(judge(real.cuda()), torch.ones(len(real), 8).cuda())  # low: GPU505
        (wrong + right).backward()
        by_judge.step()

        painter.zero_grad()
        score(judge(painter(noise)), torch.ones(len(real), 8).cuda()).backward()  # low: GPU202, GPU505
        by_painter.step()
