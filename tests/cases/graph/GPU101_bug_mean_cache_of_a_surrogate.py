"""A surrogate model caches what its network says about its data, with the graph of all the weights, until data is added."""

import torch
from torch import nn


class DeepKernelSurrogate:
    def __init__(self, features: nn.Module, x, y, noise=1e-3):
        self.features = features.cuda()
        self.x, self.y, self.noise = x.cuda(), y.cuda(), noise
        self._mean_cache = None

    def _solve(self):
        if self._mean_cache is None:
            z = self.features(self.x)  # expect: GPU101|GPU201@c
            gram = z @ z.t() + self.noise * torch.eye(len(z), device=z.device)
            self._mean_cache = (z, torch.linalg.solve(gram, self.y))  # expect: GPU101|GPU201@c
        return self._mean_cache

    def mean(self, points):
        z, weights = self._solve()
        with torch.no_grad():
            return (self.features(points.cuda()) @ z.t() @ weights).cpu()


def search(features, x, y, candidates, rounds):
    features.eval()
    surrogate = DeepKernelSurrogate(features, x, y)
    for batch in candidates.split(4096)[:rounds]:
        best = surrogate.mean(batch).argmax().item()
        print(batch[best].tolist())
