"""The slots of a tensor of statistics are set with grad on: it keeps the graphs of the whole update."""

import torch
from torch import nn

policy = nn.Linear(32, 8).cuda()
optimizer = torch.optim.Adam(policy.parameters())

for update in range(100):
    losses = torch.zeros(4, 16, device="cuda")
    for epoch in range(4):
        for number, batch in enumerate(minibatches):
            loss = nn.functional.mse_loss(policy(batch.states), batch.targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[epoch, number] = loss  # expect: GPU101
    print(losses.mean().item())
