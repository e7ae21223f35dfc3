import torch
from torch import nn


def train(batches, n):
    net = nn.Linear(n, n).cuda()
    opt = torch.optim.Adam(net.parameters())
    criterion = nn.MSELoss()
    for batch in batches:
        opt.zero_grad()
        total = 0
        for x, y in batch:
            total = total + criterion(net(x.cuda()), y.cuda())  # maybe: GPU303
        total.backward(retain_graph=True)  # low: GPU301
        opt.step()
