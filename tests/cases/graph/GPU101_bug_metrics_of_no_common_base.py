"""Here the classes have nothing in common but the name of a method: what the others do says nothing of this one."""
# file: metrics/others.py
import torch


class Accuracy:
    def __init__(self):
        self.reset()

    def reset(self):
        self.right = 0

    def update(self, output):
        self.right += (output[0].detach().argmax(1) == output[1]).sum().item()

    def compute(self):
        return self.right


class Histogram:
    def reset(self):
        self.bins = torch.zeros(10)

    def update(self, output):
        self.bins += output.detach().cpu().histc(10)

    def compute(self):
        return self.bins
# file: metrics/perplexity.py
import torch
from torch.nn import functional as F


class Perplexity:
    def __init__(self):
        self.reset()

    def reset(self):
        self.nll = torch.tensor(0.0, dtype=torch.double)

    def update(self, output):
        y_pred, y = output
        nll = F.cross_entropy(y_pred, y, reduction="sum")
        self.nll += nll.to("cpu", dtype=torch.double)  # low: GPU101

    def compute(self):
        return self.nll.exp().item()
