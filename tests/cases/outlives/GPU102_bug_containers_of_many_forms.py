"""Containers of results: emptied, cut, ringed, joined, moved by helpers, handed on, slots, rounds of an ensemble."""

import logging
from collections import OrderedDict, defaultdict, deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torchvision import models

log = logging.getLogger(__name__)
SHARED = []


def to_cpu(tensors):
    return [tensor.cpu() for tensor in tensors]


def to_numpy(tensor):
    return tensor.detach().cpu().numpy()


def joined(parts, dim=0):
    return torch.cat(parts, dim=dim)


def number_of(parts):
    return sum(part.shape[0] for part in parts)


@torch.no_grad()
def helpers(model, loader):
    model.cuda().eval()
    first, second, third, fourth, fifth = [], [], [], [], []
    for x, _ in loader:
        out = model(x.cuda())
        first.append(out)  # maybe: GPU102
        second.append(to_numpy(out))
        third.append(out.max(1).values)  # maybe: GPU102
        fourth.append(out.to(torch.float16))  # maybe: GPU102
        fifth.append(out)  # maybe: GPU102
    log.info("%d", number_of(first))
    first = to_cpu(first)
    every = joined(third)
    fourth = [one.cpu() for one in fourth]
    for index, one in enumerate(fifth):
        fifth[index] = one.cpu()
    return torch.cat(first), np.concatenate(second), every.cpu(), fourth, fifth


@torch.no_grad()
def yielding(model, loader):
    window, last = [], None
    for x, _ in loader:
        window.append(model(x.cuda()))
        if len(window) == 8:
            yield torch.cat(window)
            window = []
    if window:
        yield torch.cat(window)


@torch.no_grad()
def emptied(model, loader, store):
    buffer, ring, table = [], deque(maxlen=16), {}
    for number, (x, _) in enumerate(loader):
        out = model(x.cuda())
        buffer.append(out)
        ring.append(out)
        table[number % 4] = out
        if number % 10 == 9:
            store.write(torch.cat(buffer).cpu())
            buffer.clear()
        del out
    rest = OrderedDict()
    for name, module in model.named_children():
        rest[name] = module(x.cuda()).mean().item()
    return ring, table, rest


class Ensemble(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.nets = nn.ModuleList(models.resnet18() for _ in range(size))
        self.optimizers = [torch.optim.Adam(net.parameters()) for net in self.nets]
        self.outputs = []
        self.by_net = {}

    def predict(self, x):
        outs = {}
        for number, net in enumerate(self.nets):
            outs[number] = net(x)
        return torch.stack(list(outs.values())).mean(0)

    def part(self, x, size):
        outs = [None] * size
        for index, net in enumerate(self.nets[:size]):
            outs[index] = net(x)
            self.by_net[index] = outs[index].detach()
        return outs

    def update(self, x, y):
        losses = {}
        for number, net in enumerate(self.nets):
            losses[number] = F.cross_entropy(net(x), y)
            self.optimizers[number].zero_grad()
            losses[number].backward()
            self.optimizers[number].step()
        return sum(loss.item() for loss in losses.values())

    @torch.no_grad()
    def collect(self, loader):
        for x, _ in loader:
            self.outputs.append(self.predict(x.cuda()))  # maybe: GPU102
        result = torch.cat(self.outputs)
        self.outputs = []
        return result

    @torch.no_grad()
    def on_batch_end(self, out):
        self.outputs.append(out)  # maybe: GPU102

    def on_epoch_end(self):
        log.info("%s", torch.stack(self.outputs).mean())
        del self.outputs[:]


class Gatherer:
    def __init__(self, model, limit=None):
        self.model = model.cuda().eval()
        self.limit = limit
        self.seen = []
        self.kept = defaultdict(list)
        self.cursor = 0

    def add(self, batch, name="all"):
        with torch.no_grad():
            feature = self.model(batch.cuda())
        self.kept[name].append(feature)  # low: GPU102
        self.seen.append(feature[:, 0])  # maybe: GPU102
        if self.limit is not None and len(self.seen) > self.limit:
            self.seen = self.seen[-self.limit :]

    def finish(self):
        result = {name: torch.cat(parts).cpu() for name, parts in self.kept.items()}
        self.kept.clear()
        return result

    def scores(self, loader):
        sums, squares, counts = 0, 0, torch.zeros(10).cuda()
        lengths, shapes = [], []
        for x, y in loader:
            with torch.no_grad():
                out = self.model(x.cuda())
            sums += out.sum(0)
            squares += (out**2).sum(0)
            counts += torch.bincount(y.cuda(), minlength=10)
            lengths.append(out.size(0))
            shapes.append(out.shape)
        return sums / counts, squares, lengths, shapes


def distances(model, left, right):
    rows = []
    with torch.no_grad():
        bank = torch.cat([model(x.cuda()) for x in right])  # maybe: GPU102
        for x in left:
            feature = F.normalize(model(x.cuda()), dim=-1)
            row = torch.cdist(feature, bank)
            rows.append(row)  # low: GPU102
            values = row.topk(5).values
            SHARED.append(values)  # maybe: GPU102
    return torch.cat(rows).argmin(1)


def sampled(model, steps, shape):
    x = torch.randn(shape).cuda()
    frames, means = [], []
    with torch.no_grad():
        for t in reversed(range(steps)):
            noise = model(x, torch.full((shape[0],), t).cuda())  # low: GPU505
            x = x - noise * 0.1
            if t % 100 == 0:
                frames.append(x)  # maybe: GPU102
            means.append(x.mean())
    return x, torch.stack(frames), torch.stack(means)


def beams(model, start, width, steps):
    candidates, finished = [(start.cuda(), 0.0)], []
    with torch.no_grad():
        for _ in range(steps):
            extended = []
            for tokens, score in candidates:
                logits = model(tokens)[:, -1].log_softmax(-1)
                values, indices = logits.topk(width)
                for value, index in zip(values[0], indices[0]):
                    extended.append((torch.cat([tokens, index.view(1, 1)], 1), score + value.item()))  # maybe: GPU504
            extended.sort(key=lambda pair: pair[1], reverse=True)
            candidates = extended[:width]
            finished += [pair for pair in candidates if pair[0][0, -1] == 0]
    return max(finished, key=lambda pair: pair[1], default=candidates[0])


def main(loader, store):
    model = models.resnet50()
    helpers(model, loader)
    print(sum(part.sum().item() for part in yielding(model, loader)))
    emptied(model, loader, store)
    ensemble = Ensemble(3).cuda()
    for x, y in loader:
        ensemble.update(x.cuda(), y.cuda())
        ensemble.part(x.cuda(), 2)
        ensemble.on_batch_end(ensemble.predict(x.cuda()).detach())
    ensemble.on_epoch_end()
    ensemble.collect(loader)
    gatherer = Gatherer(model, 10)
    for x, _ in loader:
        gatherer.add(x)
        gatherer.add(x, name="again")
    print(gatherer.finish(), gatherer.scores(loader), len(SHARED))
    distances(model, loader, loader)
    sampled(model, 1000, (8, 3, 32, 32))
    beams(model, torch.zeros(1, 1).long(), 4, 20)
