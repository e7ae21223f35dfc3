import gc

import torch
from torch import nn


def flush():
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


class Callback:
    def on_epoch_end(self):
        flush()


def fit(net, loader, opt, epochs, callbacks=()):
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.l1_loss(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
        for cb in callbacks:
            cb.on_epoch_end()
        flush()
