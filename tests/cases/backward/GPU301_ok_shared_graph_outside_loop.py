import torch
from torch import nn


def adapt_heads(encoder, heads, x, ys, opt, rounds):
    """The encoding is made once and its graph is walked in every round."""
    x = x.cuda()
    z = encoder(x)
    for r in range(rounds):
        opt.zero_grad()
        loss = sum(nn.functional.cross_entropy(h(z), y.cuda()) for h, y in zip(heads, ys))
        loss.backward(retain_graph=True)
        opt.step()
        print(r, loss.item())
