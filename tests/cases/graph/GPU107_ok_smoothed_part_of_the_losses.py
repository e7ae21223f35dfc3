"""The stopping rule smooths a number."""

import torch


def fit(flow: torch.nn.Module, sample, opt, rounds, alpha=0.05, enough=1e-3):
    smooth = None
    for _ in range(rounds):
        losses = flow.balance_losses(sample())
        opt.zero_grad()
        losses[0].backward()
        opt.step()
        last = losses[1].item()
        smooth = last if smooth is None else alpha * last + (1 - alpha) * smooth
        if smooth < enough:
            break
