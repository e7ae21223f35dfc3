"""The weights are saved from the host, and the optimizer's state, in a file of its own, as it is: only the weights are loaded here."""

import torch
from torch import nn


def save(model: nn.Module, optimizer, number):
    weights = {name: value.cpu() for name, value in model.state_dict().items()}
    torch.save({"weights": weights, "number": number}, f"model_{number}.pt")
    torch.save(optimizer.state_dict(), f"optimizer_{number}.pt")


def main(loader, number):
    model = nn.Sequential(nn.Linear(4096, 16384), nn.Linear(16384, 4096)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    saved = torch.load(f"model_{number}.pt")
    model.load_state_dict(saved["weights"])
    for x in loader:
        optimizer.zero_grad()
        model(x.cuda()).mean().backward()
        optimizer.step()
    save(model, optimizer, number + 1)
