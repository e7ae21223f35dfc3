"""The sum is older than the batch: the next backward goes through the same graphs again."""

import torch
from torch import nn


def train(batches, n):
    net = nn.Linear(n, n).cuda()
    opt = torch.optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    total = 0
    for batch in batches:
        opt.zero_grad()
        for x, y in batch:
            total = total + criterion(net(x.cuda()), y.cuda())  # maybe: GPU303, GPU101
        total.backward(retain_graph=True)
        opt.step()


def train_recurrent(batches, n):
    cell = nn.GRUCell(n, n).cuda()
    opt = torch.optim.Adam(cell.parameters())
    state = torch.zeros(1, n, device="cuda")
    for batch in batches:
        opt.zero_grad()
        total = 0
        for x, y in batch:
            state = cell(x.cuda(), state)  # maybe: GPU103
            total = total + nn.functional.mse_loss(state, y.cuda())  # maybe: GPU303
        total.backward(retain_graph=True)
        opt.step()
