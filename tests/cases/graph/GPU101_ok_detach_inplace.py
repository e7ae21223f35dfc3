import torch as t
from torch import nn


def go(model, feed, steps):
    o = t.optim.Adagrad(model.parameters(), lr=0.05)
    f = nn.HingeEmbeddingLoss()
    s = 0
    for _ in range(steps):
        a, b = next(feed)
        err = f(model(a.cuda()), b.cuda())
        o.zero_grad()
        err.backward()
        o.step()
        err.detach_()
        s += err
    return s / steps
