"""A whole run is tried again with a smaller batch where memory did not do: the loop has one round, as a rule."""

import torch


@torch.no_grad()
def rate(net, data, size):
    right = 0
    for start in range(0, len(data), size):
        right += net(data[start : start + size].cuda()).argmax(1).eq(0).sum().item()
    return right


def rate_somehow(net, data, size):
    net.eval()
    while True:
        torch.cuda.empty_cache()
        try:
            return rate(net, data, size)
        except RuntimeError as error:
            if size == 1:
                raise error
            size //= 2


def one_batch_somehow(net, x):
    done = False
    while not done:
        torch.cuda.empty_cache()
        try:
            with torch.no_grad():
                y = net(x.cuda()).cpu()
            done = True
        except RuntimeError:
            x = x[: len(x) // 2]
    return y
