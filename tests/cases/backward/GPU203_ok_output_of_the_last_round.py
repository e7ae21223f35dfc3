"""Under one kind of loss the judge gives two things, and what the generator's step has bound stays so until the next round: no backward of the
judge's step can go through it, for its graph is gone by then."""

import torch
from torch import nn


def train(generator: nn.Module, judge: nn.Module, loader, kind, score, sort):
    by_generator = torch.optim.Adam(generator.parameters(), 1e-4)
    by_judge = torch.optim.Adam(judge.parameters(), 1e-4)
    for real, label in loader:
        fake = generator(torch.randn(len(real), 64, device="cuda"))
        if kind == "plain":
            verdict = judge(fake.detach())
        elif kind == "sorted":
            verdict, sorts = judge(fake.detach())
        loss = score(verdict, 0) if kind == "plain" else score(verdict, 0) + sort(sorts, label)
        judge.zero_grad()
        loss.backward()
        by_judge.step()

        if kind == "plain":
            verdict = judge(fake)  # low: GPU202
        elif kind == "sorted":
            verdict, sorts = judge(fake)
        loss = score(verdict, 1) if kind == "plain" else score(verdict, 1) + sort(sorts, label)
        generator.zero_grad()
        loss.backward()
        by_generator.step()
