"""A whole run is tried again with a smaller batch where memory did not do: the loop has one round, as a rule."""

import torch


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
