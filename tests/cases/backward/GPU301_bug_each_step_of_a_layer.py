"""The whole training of one of torch's own layers: nobody goes backward twice."""

import torch
from torch import nn


def train(loader):
    net = nn.Conv2d(3, 1, 3).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward(retain_graph=True)  # expect: GPU301
        opt.step()


pictures, wanted = torch.rand(64, 3, 8, 8), torch.rand(64, 1, 6, 6)
train(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(pictures, wanted), 8))
