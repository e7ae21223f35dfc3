import torch
from torch import nn


@torch.no_grad()
def encode(model: nn.Module, texts, device="cuda"):
    model.to(device).eval()
    found = []
    for part in [texts[i : i + 50] for i in range(0, len(texts), 50)]:
        found.append(model(part))  # low: GPU102
    return torch.cat(found).cpu()
