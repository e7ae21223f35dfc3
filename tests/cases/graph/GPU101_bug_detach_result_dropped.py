import torch
from torch import nn


def epoch_loop(net, data, device):
    opt = torch.optim.Adam(net.parameters())
    crit = nn.SmoothL1Loss()
    acc_loss = 0.
    for k, (inp, tgt) in enumerate(data):
        opt.zero_grad()
        loss = crit(net(inp.to(device)), tgt.to(device))
        loss.backward()
        opt.step()
        loss.detach()
        acc_loss += loss  # expect: GPU101
        if k % 20 == 19:
            print("[%5d] %.4f" % (k + 1, acc_loss / (k + 1)))
    return acc_loss
