"""One function trains and then measures, in eval mode, by numbers only."""

import torch
from torch import nn


def fit_head(features, targets, held_out, held_targets, device):
    head = nn.Sequential(nn.Linear(64, 4096), nn.GELU(), nn.Linear(4096, 4096)).to(device)
    optimizer = torch.optim.Adam(head.parameters())
    head.train()
    for _ in range(200):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(head(features.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
    head.eval()
    guess = head(held_out.to(device))  # expect: GPU201
    return guess.detach().cpu().numpy(), nn.functional.mse_loss(guess, held_targets.to(device)).item()


def score_by_loss(network, loader, device):
    network = network.cuda()
    optimizer = torch.optim.Adam(network.parameters())
    for x, y in loader:
        loss = ((y.cuda() - network(x.cuda())) ** 2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for x, y in loader:
        errors = ((y.cuda() - network(x.cuda())) ** 2).sum(1)  # expect: GPU201
    return errors.data.cpu().numpy()
