import torch
from torch import nn


class KVCache:
    def __init__(self):
        self.k = {}

    def put(self, layer, k):
        self.k[layer] = k

    def clear(self):
        self.k.clear()


@torch.no_grad()
def generate(model: nn.Module, prompts, n):
    model.eval()
    cache = KVCache()
    for ids in prompts:
        ids = ids.cuda()
        for _ in range(n):
            ids = torch.cat([ids, model(ids, cache)[:, -1:].argmax(-1)], 1)
        cache.clear()
        yield ids.tolist()
