"""A number of each parameter is one wait each: a norm that is added up on the host."""

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(24)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)


def total_norm(parameters, kind=2):
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    total = 0.0
    for one in filter(lambda p: p.grad is not None, parameters):
        norm = one.grad.data.norm(kind)
        total += norm.item() ** kind  # note: GPU504
    return total ** (1.0 / kind)


def train(loader):
    for inputs, wanted in loader:
        loss = nn.functional.mse_loss(model(inputs.cuda()), wanted.cuda())
        optimizer.zero_grad()
        loss.backward()
        if any(not torch.isfinite(p.grad).all() for p in model.parameters()):  # note: GPU504
            continue
        print(total_norm(model.parameters()), {name: float(p.grad.abs().max()) for name, p in model.named_parameters()})  # low: GPU504
        optimizer.step()
