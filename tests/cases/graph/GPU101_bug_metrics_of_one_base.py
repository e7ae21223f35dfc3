"""Metrics of one base: two of them detach what they are handed, the third adds it up as it is. Nobody in sight feeds them."""
# file: metrics/base.py
class Metric:
    def __init__(self, transform=lambda x: x, device="cpu"):
        self.transform, self.device = transform, device
        self.reset()

    def reset(self):
        raise NotImplementedError

    def update(self, output):
        raise NotImplementedError

    def compute(self):
        raise NotImplementedError
# file: metrics/accuracy.py
import torch

from metrics.base import Metric


class Accuracy(Metric):
    def reset(self):
        self._right = torch.tensor(0, device=self.device)
        self._seen = 0

    def update(self, output):
        y_pred, y = output[0].detach(), output[1].detach()
        self._right += (y_pred.argmax(1) == y).sum()
        self._seen += len(y)

    def compute(self):
        return self._right.item() / self._seen


class TopPart(Accuracy):
    def update(self, output):
        scores, y = output
        scores = scores.detach()
        self._right += (scores.topk(5).indices == y[:, None]).any(1).sum()
        self._seen += len(y)
# file: metrics/perplexity.py
import torch
from torch.nn import functional as F

from metrics.base import Metric


class Perplexity(Metric):
    def reset(self):
        self._nll = torch.tensor(0.0, dtype=torch.double, device=self.device)
        self._tokens = 0

    def update(self, output):
        y_pred, y = output
        nll = F.cross_entropy(y_pred, y, reduction="sum")
        self._nll += nll.to(self.device, dtype=torch.double)  # expect: GPU101
        self._tokens += y.numel()

    def compute(self):
        return (self._nll / self._tokens).exp().item()
# file: engine.py
class Engine:
    def __init__(self, process, metrics):
        self.process, self.metrics = process, metrics

    def run(self, loader):
        for batch in loader:
            output = self.process(self, batch)
            for metric in self.metrics:
                metric.update(metric.transform(output))
        return [metric.compute() for metric in self.metrics]
# file: evaluate.py
from engine import Engine
from metrics.accuracy import Accuracy, TopPart
from metrics.perplexity import Perplexity


def engine_for(process):
    return Engine(process, [Accuracy(), TopPart(), Perplexity(device="cuda")])
