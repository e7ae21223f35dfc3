"""The metric cuts what it is handed; a meter of numbers; a buffer of steps that the policy's gradient goes through."""

import torch


class RankCorrelation:
    def __init__(self):
        self.reset()

    def reset(self):
        self._scores, self._targets = [], []

    @torch.no_grad()
    def note(self, error: torch.Tensor):
        self._scores.append(error.square().mean())

    def update(self, scores: torch.Tensor, targets: torch.Tensor):
        scores = scores.detach()
        self._scores.append(scores.to("cpu", dtype=torch.float32))
        self._targets.append(targets.to("cpu"))

    def compute(self):
        return torch.corrcoef(torch.stack([torch.cat(self._scores), torch.cat(self._targets)]))[0, 1].item()


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


class RolloutBuffer:
    def __init__(self):
        self.clear()

    def clear(self):
        self.log_probs = []

    def add(self, log_prob: torch.Tensor):
        self.log_probs.append(log_prob.sum(-1))
