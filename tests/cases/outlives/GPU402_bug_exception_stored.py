import torch
from torch import nn


class Sweep:
    def __init__(self, model: nn.Module):
        self.model = model.cuda()
        self.failures = []

    def run(self, batches):
        for x, y in batches:
            try:
                nn.functional.cross_entropy(self.model(x.cuda()), y.cuda()).backward()
            except torch.cuda.OutOfMemoryError as e:
                self.failures.append(e)  # expect: GPU402
            self.model.zero_grad()
        return len(self.failures)
