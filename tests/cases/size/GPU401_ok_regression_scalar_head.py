import torch
from torch import nn


def train(loader, d_in, epochs):
    net = nn.Sequential(nn.Linear(d_in, 4096), nn.ReLU(), nn.Linear(4096, 1)).cuda()
    opt = torch.optim.Adam(net.parameters())
    for _ in range(epochs):
        for x, y in loader:
            pred = net(x.cuda())
            loss = nn.functional.mse_loss(pred[:, 0], y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()


@torch.no_grad()
def test(net, loader):
    net.eval()
    err = 0.0
    for x, y in loader:
        pred = net(x.cuda())
        err += (pred[:, 0] - y.cuda()).abs().sum().item()
    return err
