import torch
from torch import nn


class TokenCache:
    def __init__(self):
        self.rows = {}

    def empty_cache(self):
        self.rows.clear()


class Store:
    def __init__(self):
        self.cuda = TokenCache()


def train(model, loader, opt, store: Store):
    cache = TokenCache()
    for x, y in loader:
        cache.rows[len(x)] = x.shape
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        cache.empty_cache()
        store.cuda.empty_cache()
