"""In every step, but not for nothing: a renderer takes memory of the same GPU, and the logits go at once."""

import cupy
import torch
import torch.nn.functional as F


def train(net, optimizer, loader):
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # expect: GPU501
        cupy.histogram(cupy.asarray(x), 16)


def score(net, loader):
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            logits = net(x.cuda())
            right += logits.argmax(1).eq(y.cuda()).sum().item()
            del logits
            torch.cuda.empty_cache()  # note: GPU501
    return right
