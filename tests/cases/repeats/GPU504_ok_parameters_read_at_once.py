"""Norms that are stacked wait once; whole weights that go to the host are something else."""

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(24)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)


def train(loader):
    for inputs, wanted in loader:
        loss = nn.functional.mse_loss(model(inputs.cuda()), wanted.cuda())
        optimizer.zero_grad()
        loss.backward()
        norms = torch.stack([p.grad.norm() for p in model.parameters()])
        print(norms.norm().item(), norms.tolist(), [p.grad.numel() for p in model.parameters()])
        optimizer.step()
        kept = [p.detach().cpu() for p in model.parameters()]
        torch.save(kept, "last.pt")
