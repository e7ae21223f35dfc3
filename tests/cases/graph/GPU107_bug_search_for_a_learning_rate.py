"""A search for a learning rate smooths the loss with its graph and keeps what comes out, step by step."""

import math

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
            average = beta * average + (1 - beta) * loss  # expect: GPU107|GPU101@s
            smoothed = average / (1 - beta**k)
            if k > 1 and smoothed > 4 * best:
                break
            best = min(best, float(smoothed))
            self.rates.append(math.log10(rate))
            self.losses.append(smoothed)  # expect: GPU107|GPU101@s
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            rate *= factor
        return min(zip(self.losses, self.rates), key=lambda pair: float(pair[0]))[1]
