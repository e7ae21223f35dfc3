import torch
from torch import nn


def train(net, loader, opt):
    for x, y in loader:
        out = net(x.cuda())
        loss = nn.functional.mse_loss(out, y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        for v in out.detach():
            print(float(v.mean()))  # low: GPU504
