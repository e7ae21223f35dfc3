import torch
from torch import nn


def train(net, loader, opt, scaler, second_order=False):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward(create_graph=False)
        opt.step()
        loss = nn.functional.l1_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward(create_graph=second_order)  # maybe: GPU302
        opt.step()
