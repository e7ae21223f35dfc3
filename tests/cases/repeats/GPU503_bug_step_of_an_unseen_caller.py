"""One step, and nobody in sight calls it: who does may read a clock after each."""

import torch
import torch.nn.functional as F


def step(net, optimizer, x, y):
    loss = F.cross_entropy(net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()  # low: GPU503
    return loss  # maybe: GPU101
