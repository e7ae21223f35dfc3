"""Each sequence's outputs fill an array, each such array a slot of the one that is returned."""

import torch
from torch import nn


def evaluate(net: nn.Module, inputs, targets, steps, width):
    n = inputs.size()[0]
    errors = torch.empty(n)
    outputs = torch.empty(n, width, steps)
    net.eval()
    for j in range(n):
        one = torch.empty(width, steps).to("cuda")
        for t in range(steps):
            one[:, t] = net(inputs[j, :, t])  # maybe: GPU101  # note: GPU201
        errors[j] = nn.functional.mse_loss(one, targets[j]).item()
        outputs[j] = one  # expect: GPU101
    return errors, outputs
