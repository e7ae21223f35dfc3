"""What a helper of a package does with the result cannot be seen: it may well only count."""

import torch
import torch.nn.functional as F
from scores import accuracy


def check(net: torch.nn.Module, x, labels):
    net.eval()
    out = net(x.cuda())  # low: GPU201
    loss = F.cross_entropy(out, labels)
    print(loss.item(), accuracy(out, labels).item())
