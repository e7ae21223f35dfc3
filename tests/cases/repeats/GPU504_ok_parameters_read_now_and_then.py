"""A norm of each weight is read every so many steps."""

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(24)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)


def train(loader):
    for step, (inputs, wanted) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs.cuda()), wanted.cuda())
        optimizer.zero_grad()
        loss.backward()
        if step % 200 == 0:
            for name, p in model.named_parameters():
                print(name, p.grad.norm().item())
        optimizer.step()
