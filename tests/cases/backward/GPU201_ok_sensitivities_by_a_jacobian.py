"""How a network's answer depends on its input: the Jacobian is made by autograd, which no backward shows."""

import torch
from torch.autograd.functional import jacobian


def sensitivities(net: torch.nn.Module, loader):
    net.cuda().eval()
    largest = []
    for x, _ in loader:
        for row in x.cuda():
            matrix = jacobian(lambda r: net(r.unsqueeze(0)).squeeze(0), row)
            largest.append(torch.linalg.matrix_norm(matrix.flatten(1), 2).item())
    return max(largest)
