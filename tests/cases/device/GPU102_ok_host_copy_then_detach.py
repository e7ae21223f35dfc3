import torch
from torch import nn


def embeddings(net: nn.Module, loader, device="cuda"):
    net.eval()
    table = torch.empty([0])
    parts = []
    for wave, length in loader:
        vectors = net(wave.to(device), length.to(device))  # expect: GPU201
        table = torch.cat((table, vectors.cpu().detach()))
        parts.append(vectors.view(len(wave), -1).to(device="cpu").detach())
    return table, parts
