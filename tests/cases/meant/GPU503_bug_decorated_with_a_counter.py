"""A decorator of another file counts the steps; nobody measures what waits."""
# file: steps.py
import torch
import torch.nn.functional as F

from watch import counted


@counted
def step(net, x, y, opt):
    loss = F.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    torch.cuda.synchronize()  # expect: GPU503


def train(net, loader, opt):
    net.cuda()
    for x, y in loader:
        step(net, x, y, opt)
    print(step.times)
# file: watch.py
import functools


def counted(function):
    @functools.wraps(function)
    def counting(*args, **kwargs):
        counting.times += 1
        return function(*args, **kwargs)

    counting.times = 0
    return counting
