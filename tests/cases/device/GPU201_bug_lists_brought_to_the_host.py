import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def probabilities(net: nn.Module, loader, device="cuda"):
    net.eval()
    kept = []
    for x, _ in loader:
        out = net(torch.reshape(x, (len(x), -1)).float().to(device))  # expect: GPU201
        kept.append(F.softmax(out, 1)[:, 1])  # maybe: GPU101
    arrays = [part.detach().cpu().numpy() for part in kept]
    return np.concatenate(arrays)
