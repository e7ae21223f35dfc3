"""Metrics, meters and storages: what they are fed by their callers, what they do with it, and when they are emptied."""
# file: metrics.py
import collections
import math

import torch
import torchmetrics
from torch import nn
from torchmetrics import Metric

EVENTS = []
ROUND = []


class LossMetric:
    def __init__(self, name, window=0):
        self.name = name
        self.recent = collections.deque(maxlen=window or 100)
        self.older = []
        self.reset()

    def reset(self):
        self.total, self.count, self.values, self.pairs = 0.0, 0, [], []

    def update(self, loss, n=1, weight=None):
        self.total += loss * n  # maybe: GPU104, GPU101
        self.count += n
        self.values.append((loss, n))  # maybe: GPU104
        self.pairs.append({"loss": loss, "n": n, "weight": weight})  # maybe: GPU104
        self.recent.append(loss)
        self.older.append(loss)  # maybe: GPU104
        if len(self.older) > 50:
            self.older.pop(0)

    def compute(self):
        return self.total / max(self.count, 1)


class Perplexity(Metric):
    is_differentiable = True
    full_state_update = False

    def __init__(self):
        super().__init__()
        self.add_state("nll", default=torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("count", default=torch.tensor(0))

    def update(self, logits, targets):
        nll = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
        self.nll += nll  # maybe: GPU104, GPU101
        self.count += targets.numel()

    def compute(self):
        return torch.exp(self.nll / self.count)


class PlainAccuracy(torchmetrics.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("right", default=torch.tensor(0.0))

    def update(self, logits, targets):
        score = logits.softmax(-1).gather(1, targets[:, None]).sum()
        self.right += score

    def compute(self):
        return self.right


class Ratio(nn.Module):
    """Both halves stay in the module until somebody asks."""

    def __init__(self):
        super().__init__()
        self.register_buffer("top", torch.zeros(1))
        self.bottom = 0

    def update(self, predicted, target):
        loss = (predicted - target).abs().sum()
        self.top = self.top + loss  # maybe: GPU104, GPU101, GPU107
        self.bottom += target.abs().sum().item()

    def reset(self):
        self.top.zero_()
        self.bottom = 0

    def value(self):
        return self.top / self.bottom


class ReplayLossBuffer:
    def __init__(self):
        self.losses = []

    def add(self, loss):
        self.losses.append(loss)

    def clear(self):
        self.losses = []

    def summary(self):
        return torch.stack(self.losses).mean()


class Tracker:
    def __init__(self):
        self.meters = collections.defaultdict(LossMetric)
        self.history = {}
        self.reports = []

    def log(self, **losses):
        for key, loss in losses.items():
            if key not in self.history:
                self.history[key] = []
            self.history[key].append(loss)  # maybe: GPU104, GPU101
            self.meters[key].update(loss)

    def collect(self, info):
        for value in info:
            self.reports.append(value)  # maybe: GPU104

    def report(self):
        return {key: math.fsum(map(float, values)) for key, values in self.history.items()}

    def reset(self):
        self.history.clear()


def record(name, loss):
    EVENTS.append({"name": name, "loss": loss.mean()})  # maybe: GPU104
    ROUND.append((name, loss))  # maybe: GPU104


def flush():
    found = [event["loss"].item() for event in EVENTS]
    EVENTS.clear()
    return found


# file: train.py
import torch
import torch.nn.functional as F

from metrics import LossMetric, Perplexity, PlainAccuracy, Ratio, ReplayLossBuffer, Tracker, flush, record


def compute_losses(model, batch):
    logits = model(batch["x"].cuda())
    task = F.cross_entropy(logits, batch["y"].cuda())
    extra = logits.pow(2).mean()
    stats = {"task": task.item(), "extra": extra, "norm": logits.norm().item(), "n": logits.shape[0]}
    return task + 0.1 * extra, stats


def step(model, batch, optimizer):
    loss, info = compute_losses(model, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss, info


def train(model, loader, optimizer, tracker):
    meter, every, total = LossMetric("loss"), [], 0
    kept, running = [], None
    for number, batch in enumerate(loader):
        loss, info = step(model, batch, optimizer)
        meter.update(loss, len(batch))  # expect: GPU104|GPU101
        every.append(info)  # expect: GPU101
        total += info["extra"]  # expect: GPU101
        tracker.log(task=loss.item(), extra=info["extra"])  # maybe: GPU104
        tracker.collect(info)
        record("loss", loss)  # expect: GPU104
        running = loss if running is None else running * 0.9 + loss * 0.1  # expect: GPU101
        kept.append(step(model, batch, optimizer)[1])  # expect: GPU101
        if number % 100 == 0:
            print(f"{loss:.3f}", meter.compute(), *flush())
            tracker.reset()
    return meter, every, total, kept, running


def validate(model, loader):
    perplexity, accuracy, ratio = Perplexity().cuda(), PlainAccuracy().cuda(), Ratio().cuda()
    model.eval()
    for batch in loader:
        logits = model(batch["x"].cuda())  # maybe: GPU201
        perplexity.update(logits, batch["y"].cuda())  # expect: GPU104|GPU101
        accuracy.update(logits, batch["y"].cuda())
        ratio.update(logits, batch["y"].cuda())  # expect: GPU104|GPU101
    return perplexity.compute(), accuracy.compute(), ratio.value()


def replay(model, batches, optimizer):
    losses = ReplayLossBuffer()
    for number, batch in enumerate(batches):
        loss, _ = compute_losses(model, batch)
        losses.add(loss)
        if number % 8 == 7:
            losses.summary().backward()
            optimizer.step()
            losses.clear()


if __name__ == "__main__":
    network = torch.nn.Linear(1000, 1000).cuda()
    adam = torch.optim.Adam(network.parameters())
    data = torch.utils.data.DataLoader([{"x": torch.zeros(1000), "y": 1}] * 1000, batch_size=32)
    for epoch in range(3):
        train(network, data, adam, Tracker())
        validate(network, data)
    replay(network, data, adam)
