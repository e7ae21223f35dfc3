"""A metric of a library puts by what it is handed, moved and not cut; it cannot know whether it comes with a graph."""

import torch


class RankCorrelation:
    def __init__(self):
        self.reset()

    def reset(self):
        self._scores, self._targets = [], []

    def update(self, scores: torch.Tensor, targets: torch.Tensor):
        if scores.ndim == 2:
            scores = scores.squeeze(-1)
        self._scores.append(scores.to("cpu", dtype=torch.float32))  # low: GPU101
        self._targets.append(targets.to("cpu"))

    def compute(self):
        ranks = [torch.cat(one).detach().argsort().argsort().float() for one in (self._scores, self._targets)]
        return torch.corrcoef(torch.stack(ranks))[0, 1].item()
