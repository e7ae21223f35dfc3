"""Figures that steps hand on: written, averaged, yielded, shown, kept, in dicts and tuples, by callers near and far."""
# file: steps.py
import json
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


class Report:
    def __init__(self, path):
        self.path = path
        self.rows, self.best, self.sums = [], {}, OrderedDict()
        self.newest = None

    def add(self, row):
        self.rows.append(row)  # maybe: GPU101, GPU104

    def put(self, name, row):
        self.best[name] = row  # maybe: GPU101, GPU104

    def each(self, row):
        for name, value in row.items():
            self.sums.setdefault(name, []).append(value)  # maybe: GPU101, GPU104

    def show(self, row):
        self.newest = row
        print(json.dumps({name: float(value) for name, value in row.items()}))

    def write(self, row):
        with open(self.path, "a") as stream:
            stream.write(json.dumps({name: value.item() for name, value in row.items()}))


def forward_step(model, batch):
    x, y = batch[0].cuda(), batch[1].cuda()
    out = model(x)
    main = F.cross_entropy(out, y)
    smooth = out.abs().mean()
    loss = main + 0.1 * smooth
    stats = {"loss": loss.item(), "main": main.item(), "smooth": smooth, "size": len(x)}  # maybe: GPU101
    return loss, stats


def named_step(model, batch, optimizer):
    loss, stats = forward_step(model, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log_vars = OrderedDict()
    log_vars["loss"] = loss.detach()
    log_vars["raw"] = loss
    log_vars["norm"] = torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()
    return dict(loss=loss, log_vars=log_vars, num_samples=len(batch[0]))


def yielded(model, loader, optimizer):
    for batch in loader:
        loss, stats = forward_step(model, batch)
        loss.backward()
        optimizer.step()
        info = {"value": loss.item(), "graph": loss, "lr": 0.1}  # low: GPU101
        yield info


def returned_display(model, batch):
    loss, _ = forward_step(model, batch)
    loss.backward()
    return {"detached": loss.detach(), "attached": loss, "accuracy": 0.5}  # expect: GPU101


def wrapped(model, batch):
    stats = returned_display(model, batch)
    return stats


def by_name(model, batch, stats=None):
    stats = {} if stats is None else stats
    loss, _ = forward_step(model, batch)
    loss.backward()
    stats["a"] = loss.item()
    stats["b"] = loss  # low: GPU101
    return stats


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(1000, 10)
        self.stats, self.losses, self.seen = {}, {}, 0

    def forward(self, x):
        out = self.net(x)
        self.stats["mean"] = out.mean().item()
        self.stats["std"] = out.std()
        self.losses = {"sparse": out.abs().mean(), "count": 1}
        self.seen += len(x)
        return out

    def loss(self, out, y):
        return F.cross_entropy(out, y) + self.losses["sparse"]

    @property
    def figures(self):
        return {name: float(value) for name, value in self.stats.items()}


# file: run.py
import math

import torch
import wandb
from torch.utils.data import DataLoader

from steps import Model, Report, by_name, forward_step, named_step, returned_display, wrapped, yielded


def kept(model, loader, optimizer, report):
    history, sums, last = [], {}, None
    for batch in loader:
        loss, stats = forward_step(model, batch)
        loss.backward()
        optimizer.step()
        history.append(stats)  # expect: GPU101
        report.add(stats)  # expect: GPU101|GPU104
        report.put("stats", stats)
        report.each(stats)  # expect: GPU101|GPU104
        for name in stats:
            sums[name] = sums.get(name, 0) + stats[name]  # maybe: GPU101
    return history, sums, last


def shown(model, loader, optimizer, report):
    for batch in loader:
        loss, stats = forward_step(model, batch)
        loss.backward()
        optimizer.step()
        report.show(stats)
        report.write(stats)
        wandb.log(stats)
        print(stats["loss"], "%s" % stats["smooth"], {name: f"{value:.3f}" for name, value in stats.items()})
        if stats["smooth"] > 10 or math.isnan(stats["smooth"]):
            break


def of_named(model, loader, optimizer):
    every, values = [], []
    for batch in loader:
        outputs = named_step(model, batch, optimizer)
        every.append(outputs)  # expect: GPU101
        values.append(outputs["log_vars"]["norm"])
        values.append(named_step(model, batch, optimizer)["loss"].item())
        values += [named_step(model, batch, optimizer)["loss"]]  # maybe: GPU101
    return every, values


def of_others(model, loader, optimizer):
    rows, numbers, shared = [], [], {}
    for info in yielded(model, loader, optimizer):
        rows.append(info)  # maybe: GPU101
        numbers.append(info["value"])
    for batch in loader:
        rows.append(wrapped(model, batch))  # maybe: GPU101
        numbers.append(returned_display(model, batch)["detached"])
        shared = by_name(model, batch, shared)
        by_name(model, batch, rows[-1])
        numbers.append(float(by_name(model, batch)["b"]))
    return rows, numbers, shared


def of_module(loader, optimizer):
    model, history = Model().cuda(), []
    for x, y in loader:
        loss = model.loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        history.append(model.figures)
        history.append(dict(model.stats))  # maybe: GPU101
        history.append(model.losses["sparse"])  # maybe: GPU101
    return history


if __name__ == "__main__":
    network = Model().cuda()
    data = DataLoader([0] * 10_000, batch_size=32)
    adam = torch.optim.Adam(network.parameters())
    reports = Report("report.json")
    kept(network, data, adam, reports)
    shown(network, data, adam, reports)
    of_named(network, data, adam)
    of_others(network, data, adam)
    of_module(data, adam)
