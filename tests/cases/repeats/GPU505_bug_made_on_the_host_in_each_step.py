"""Zeros for a loss, and weights of classes, made or kept on the host and moved in every step of a training."""

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device("cuda")


def train(model: nn.Module, loader, optimizer):
    weights = torch.tensor([1.0, 2.0, 4.0])
    for inputs, labels in loader:
        out = model(inputs.to(device))
        loss = F.cross_entropy(out, labels.to(device), weight=weights.to(device))  # low: GPU505
        loss = loss + (torch.linspace(0, 1, 3).to(device) * out).mean()  # low: GPU505
        field = torch.zeros(1024, 1024).to(device)  # expect: GPU505
        loss = loss + (field + out.mean()).mean() + torch.zeros((16, 16)).cuda().sum()  # low: GPU505
        loss = loss + F.mse_loss(out, torch.zeros(len(out), 3).to(device))  # low: GPU505
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scale = torch.tensor([0.5, 0.5, 0.5]).cuda()  # low: GPU505
        print((out.detach() * scale).mean().item())


def evaluate(model: nn.Module, loader, priors):
    found = 0
    with torch.no_grad():
        for inputs, labels in loader:
            mask = torch.ones(3).to(device)  # low: GPU505
            found += (model(inputs.to(device)) * mask * priors.to(device)).argmax(-1).eq(labels.to(device)).sum().item()  # low: GPU505
    return found
