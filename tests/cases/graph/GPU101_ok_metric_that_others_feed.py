"""The same metric; it cuts what it is given."""

import torch


class RunningMean:
    """The mean of a scalar over an epoch, over all processes."""

    def __init__(self, device="cuda"):
        self.device = device
        self.reset()

    def reset(self):
        self.total = torch.zeros((), device=self.device)
        self.count = 0

    def update(self, value: torch.Tensor, n: int = 1):
        self.total = self.total + value.detach().to(self.device) * n
        self.count += n

    def compute(self):
        packed = torch.stack([self.total, torch.tensor(float(self.count), device=self.device)])
        if torch.distributed.is_initialized():
            torch.distributed.all_reduce(packed)
        return (packed[0] / packed[1]).item()
