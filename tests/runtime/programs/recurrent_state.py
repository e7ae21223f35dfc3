# holder: tensor `state` in `train()`
# line: state = cell(x, state)
# graph: yes
import torch
from setting import batch, device
from torch import nn


def train():
    cell = nn.GRUCell(32, 64).to(device)
    head = nn.Linear(64, 4).to(device)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=1e-3)
    state = torch.zeros(16, 64, device=device)
    for _ in range(1000):
        x, y = batch()
        state = cell(x, state)
        loss = nn.functional.cross_entropy(head(state), y)
        optimizer.zero_grad()
        (gradient,) = torch.autograd.grad(loss, head.weight, retain_graph=True)
        head.weight.grad = gradient
        optimizer.step()


train()
