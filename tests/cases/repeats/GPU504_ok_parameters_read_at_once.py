"""Norms that are stacked wait once; a few layers, what is read every so many steps, and whole weights that go to the host are something else."""

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(24)]).cuda()
small = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
optimizer = torch.optim.Adam([*model.parameters(), *small.parameters()], lr=1e-4)


def train(loader):
    for step, (inputs, wanted) in enumerate(loader):
        loss = nn.functional.mse_loss(small(model(inputs.cuda())), wanted.cuda())
        optimizer.zero_grad()
        loss.backward()
        norms = torch.stack([p.grad.norm() for p in model.parameters()])
        print(norms.norm().item(), norms.tolist(), [p.grad.numel() for p in model.parameters()])
        for p in small.parameters():
            print(p.grad.norm().item())
        if step % 200 == 0:
            for name, p in model.named_parameters():
                print(name, p.grad.norm().item())
        optimizer.step()
        kept = [p.detach().cpu() for p in model.parameters()]
        torch.save(kept, "last.pt")
