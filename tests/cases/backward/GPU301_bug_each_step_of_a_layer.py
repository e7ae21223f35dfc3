"""The whole training of one of torch's own layers: nobody goes backward twice."""

import torch
from torch import nn


def train(loader):
    net = nn.Linear(4, 1).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward(retain_graph=True)  # low: GPU301
        opt.step()


train(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), 8))
