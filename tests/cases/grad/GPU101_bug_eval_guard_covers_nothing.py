import torch
from torch import nn


def evaluate(model, loader, device):
    model.eval()
    scores = []
    for x, y in loader:
        with torch.no_grad():
            x = x.to(device)
            y = y.to(device)
        out = model(x)  # expect: GPU201  # maybe: GPU204
        scores.append(nn.functional.mse_loss(out, y))  # expect: GPU101
    return torch.stack(scores).mean().item()
