"""Backwards through sums, by methods of others, by helpers and engines, through parts of what is kept."""
# file: optimizers.py
import torch


class Optimizers:
    """The project's own: it goes backward through the loss that it is given."""

    def __init__(self, model):
        self.model = model
        self.inner = torch.optim.Adam(model.parameters())

    def gradient(self, loss, scale=1.0):
        self.inner.zero_grad()
        (loss * scale).backward()
        self.inner.step()

    def apply_loss(self, loss):
        loss.backward()
        self.inner.step()
        self.inner.zero_grad()

    def minimize(self, closure):
        self.inner.step(closure)


def go_backward(losses, retain_graph=False):
    torch.autograd.backward(losses, retain_graph=retain_graph)


def only_logs(name, value):
    print(name, float(value))


# file: sums.py
import functools
import operator

import torch
import torch.nn.functional as F
from torch import nn

from optimizers import Optimizers, go_backward, only_logs


def by_engine(model, loader):
    engine = Optimizers(model)
    losses, total = [], 0
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        engine.gradient(loss)
        losses.append(loss)  # maybe: GPU101
        other = F.cross_entropy(model(x.cuda()), y.cuda())
        engine.apply_loss(other)
        total += other  # maybe: GPU101
        only_logs("loss", loss)
    return losses, total


def by_parameter(engine, model, loader):
    kept = []
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        engine.apply_loss(loss)
        kept.append(loss)  # maybe: GPU101
    return kept


def by_values(model, loader, optimizer):
    history, parts_history, named = [], [], []
    for x, y in loader:
        out = model(x.cuda())
        losses = {"a": F.cross_entropy(out, y.cuda()), "b": out.pow(2).mean()}
        losses["c"] = out.abs().mean()
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        history.append(total)  # expect: GPU101
        parts_history.append(losses)  # expect: GPU101
        named.append({name: loss for name, loss in losses.items()})  # maybe: GPU101
    return history, parts_history, named


def by_lists(model, loader, optimizer, weights):
    kept, stacked, mixed = [], [], []
    for x, y in loader:
        outs = model(x.cuda())
        terms = [F.cross_entropy(out, y.cuda()) for out in outs]
        torch.stack(list(terms)).mean().backward()
        kept.append(terms)  # maybe: GPU101
        pairs = [w * F.l1_loss(out, y.cuda()) for w, out in zip(weights, outs)]
        loss = 0
        for pair in pairs:
            loss = loss + pair
        loss.backward()
        stacked.append(pairs[0])  # maybe: GPU101
        first, second = F.mse_loss(outs[0], y.cuda()), F.mse_loss(outs[1], y.cuda())
        combined = first + (second if weights[0] > 0 else 0.0)
        combined /= 2
        functools.reduce(operator.add, [combined, first * 0]).backward()
        mixed.append(second)  # maybe: GPU101
        table = dict(one=first, two=second)
        torch.cat([value.view(1) for value in list(table.values())]).sum().backward()
        mixed.append(table["two"])  # maybe: GPU101
        optimizer.step()
    return kept, stacked, mixed


def by_helper(model, loader, optimizer):
    kept = []
    for x, y in loader:
        losses = [model(x.cuda()).mean(), model(y.cuda()).mean()]
        go_backward(losses)
        optimizer.step()
        kept.append(losses[0])  # maybe: GPU101
        kept.append(losses)  # maybe: GPU101
    return kept


class Step:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model.cuda(), optimizer
        self.loss = self.aux = None
        self.history, self.auxiliary = [], []
        self.batch = 0

    def compute(self, x, y):
        self.loss = F.cross_entropy(self.model(x.cuda()), y.cuda())
        self.aux = self.loss * 2

    def backward(self):
        self.optimizer.zero_grad()
        self.loss.backward(retain_graph=True)
        self.optimizer.step()

    def run(self, loader):
        for x, y in loader:
            self.compute(x, y)
            self.backward()
            self.history.append(self.loss)  # maybe: GPU101
            self.auxiliary.append(self.aux)  # maybe: GPU101
            self.batch += 1

    def run_with_sum(self, loader):
        self.total = 0
        for x, y in loader:
            self.compute(x, y)
            self.total = self.total + self.loss  # maybe: GPU101, GPU303
            if self.batch % 8 == 0:
                self.total.backward()
                self.total = 0

    def differentiate(self, x):
        score = self.model(x.cuda()).sum()
        grads = torch.autograd.grad(score, self.model.parameters(), create_graph=True)
        penalty = sum(g.pow(2).sum() for g in grads)
        self.auxiliary.append(penalty)  # maybe: GPU101
        penalty.backward()
        self.auxiliary += [score]  # maybe: GPU101
        return penalty


def lbfgs(model, loader):
    optimizer = torch.optim.LBFGS(model.parameters())
    values = []
    for x, y in loader:

        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            values.append(loss)  # maybe: GPU101
            return loss

        final = optimizer.step(closure)
        values.append(final)  # maybe: GPU101
        values.append(optimizer.step(lambda: closure().item()))
    return values


def distributed(model, loader, context_id):
    import torch.distributed.autograd as dist_autograd
    from torch.distributed.optim import DistributedOptimizer

    kept = []
    for x, y in loader:
        with dist_autograd.context() as context_id:
            loss = F.mse_loss(model(x), y)
            dist_autograd.backward(context_id, [loss])
            kept.append(loss)  # maybe: GPU101
    return kept, DistributedOptimizer


def micro_batches(model, loader, optimizer, pieces=4):
    steps, total_steps = 0, 0.0
    for x, y in loader:
        step_loss, parts = 0.0, []
        for small_x, small_y in zip(x.chunk(pieces), y.chunk(pieces)):
            loss = F.mse_loss(model(small_x.cuda()), small_y.cuda()) / pieces
            loss.backward()
            step_loss += loss
            parts.append(loss.detach())
        optimizer.step()
        total_steps += step_loss.item()
        steps += len(parts)
    return total_steps / steps


if __name__ == "__main__":
    network = nn.Linear(1000, 1000).cuda()
    data = torch.utils.data.DataLoader([0] * 10_000, batch_size=32)
    adam = torch.optim.Adam(network.parameters())
    by_engine(network, data)
    by_parameter(Optimizers(network), network, data)
    print(by_values(network, data, adam), by_lists(network, data, adam, [1, 2]), by_helper(network, data, adam))
    step = Step(network, adam)
    step.run(data)
    step.run_with_sum(data)
    step.differentiate(next(iter(data))[0])
    lbfgs(network, data)
    distributed(network, data, 0)
    micro_batches(network, data, adam)
