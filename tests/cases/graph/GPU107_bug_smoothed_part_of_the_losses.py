"""A stopping rule smooths one of several losses in a local name: each round links the next graph to it."""

import torch


def fit(flow: torch.nn.Module, sample, opt, rounds, alpha=0.05, enough=1e-3):
    smooth = None
    for _ in range(rounds):
        losses = flow.balance_losses(sample())
        opt.zero_grad()
        losses[0].backward()
        opt.step()
        if smooth is None:
            smooth = losses[1]
        else:
            smooth = alpha * losses[1] + (1 - alpha) * smooth  # low: GPU107|GPU101
        if smooth < enough:
            break
