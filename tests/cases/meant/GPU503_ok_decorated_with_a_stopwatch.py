"""A decorator of another file measures the step, which waits for that."""
# file: steps.py
import torch
import torch.nn.functional as F

from watch import stopwatch


@stopwatch
def step(net, x, y, opt):
    loss = F.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    torch.cuda.synchronize()


def train(net, loader, opt):
    net.cuda()
    for x, y in loader:
        step(net, x, y, opt)
    print(sum(step.times) / len(step.times))
# file: watch.py
import functools
import time


def stopwatch(function):
    @functools.wraps(function)
    def measured(*args, **kwargs):
        began = time.perf_counter()
        result = function(*args, **kwargs)
        measured.times.append(time.perf_counter() - began)
        return result

    measured.times = []
    return measured
