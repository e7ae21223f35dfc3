"""What is loaded becomes the optimizer, and nothing keeps the weights beside it while steps run."""

import torch
from torch import nn


def resumed(path):
    saved = torch.load(path, map_location="cuda:0")
    net = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
    net.load_state_dict(saved["net"])
    return net, saved["optimizer"]


def go_on(path, loader):
    net, optimizer = resumed(path)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"net": net.state_dict(), "optimizer": optimizer}, path)
