"""The search smooths numbers."""

import math

import torch
import torch.nn.functional as F


class RateFinder:
    def __init__(self, net, optimizer, device="cuda"):
        self.net, self.optimizer, self.device = net.to(device), optimizer, device
        self.rates, self.losses = [], []

    def search(self, batches, low=1e-8, high=10.0, beta=0.98):
        average, best = 0.0, math.inf
        factor = (high / low) ** (1 / (len(batches) - 1))
        rate = low
        for k, (x, y) in enumerate(batches, 1):
            self.optimizer.param_groups[0]["lr"] = rate
            loss = F.cross_entropy(self.net(x.to(self.device)), y.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            average = beta * average + (1 - beta) * loss.item()
            smoothed = average / (1 - beta**k)
            if k > 1 and smoothed > 4 * best:
                break
            best = min(best, smoothed)
            self.rates.append(math.log10(rate))
            self.losses.append(smoothed)
            rate *= factor
        return min(zip(self.losses, self.rates))[1]
