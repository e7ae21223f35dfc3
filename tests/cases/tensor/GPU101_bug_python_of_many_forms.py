"""Losses that go through everything that Python has: matches, walruses, stars, closures, partials, descriptors, threads."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import copy
import enum
import functools
import itertools
import operator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any, Callable, Iterable, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Batch = collections.namedtuple("Batch", ["x", "y"])
history, LOSSES = [], {}
total_loss: torch.Tensor | float = 0.0


class Phase(enum.Enum):
    TRAIN = "train"
    VALID = "valid"


@dataclass
class Result:
    loss: torch.Tensor
    size: int = 0
    extras: list = field(default_factory=list)
    notes: Union[str, None] = None

    @property
    def value(self) -> float:
        return self.loss.item()

    def __add__(self, other: "Result") -> "Result":
        return Result(self.loss + other.loss, self.size + other.size)

    def __iadd__(self, other):
        self.loss = self.loss + other.loss
        return self


class Log(dict):
    def __init__(self):
        super().__init__()
        self._steps: list[Any] = []
        self.sink = None

    def __setitem__(self, key, value):
        super().__setitem__(key, float(value))

    def note(self, *values, keep=False, **named):
        self._steps.extend(values)  # maybe: GPU101
        for key, value in named.items():
            setattr(self, key, value)
        if keep:
            self._steps.insert(0, values[0])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self._steps.clear()
        return False

    def __call__(self, value):
        self.sink = value
        return value


def loss_of(model: nn.Module, batch: Batch, phase: Phase = Phase.TRAIN) -> Result:
    match phase:
        case Phase.TRAIN if model.training:
            logits = model(batch.x.cuda())
        case Phase.VALID | Phase.TRAIN:
            with torch.no_grad():
                logits = model(batch.x.cuda())
        case _:
            raise AssertionError(phase)
    match batch:
        case Batch(x=x, y=None):
            loss = logits.pow(2).mean()
        case [x, *rest]:
            loss = F.cross_entropy(logits, batch.y.cuda())
        case {"x": x, **others}:
            loss = logits.mean()
    return Result(loss, len(batch.x))


def reduce_all(losses: Iterable[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(operator.add, losses) + functools.reduce(lambda a, b: a + b, losses, torch.zeros(()))


def train(model, loader, optimizer, on_step: Callable | None = None):
    global total_loss
    first = best = last = None
    sums, table, window = Result(torch.zeros(1)), collections.Counter(), collections.deque([], 10)
    log, queue, parts = Log(), Queue(), collections.defaultdict(lambda: 0.0)
    nested: dict[str, dict[str, list]] = {"train": {"loss": []}}
    accumulate, slots = functools.partial(history.append), [0.0] * 10
    curve = np.zeros(len(loader))
    array = torch.zeros(len(loader), device="cuda")
    with log, torch.autograd.set_detect_anomaly(True):
        for step, batch in enumerate(itertools.islice(loader, 1000)):
            batch = Batch(*batch)
            result = loss_of(model, batch)
            if (loss := result.loss).isnan():
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss  # expect: GPU101
            history.append(loss)  # expect: GPU101
            accumulate(loss.item())
            LOSSES[f"{step}"] = loss  # maybe: GPU101, GPU106
            sums += result  # note: GPU101
            sums = sums + result  # maybe: GPU101
            table["loss"] += loss.item()
            parts["loss"] += loss  # maybe: GPU101
            window.append(loss)
            queue.put(loss)  # maybe: GPU101
            nested["train"]["loss"].append(loss)  # expect: GPU101
            slots[step % 10] = loss
            curve[step] = loss
            array[step] = loss  # maybe: GPU101, GPU107
            log["loss"] = loss
            log.note(loss, keep=step == 0, last=loss)  # expect: GPU101|GPU104
            log(loss)
            first = loss if first is None else first  # maybe: GPU101
            best = min(best, loss) if best is not None else loss  # maybe: GPU101
            last, previous = loss, last
            result.extras.append(loss)
            copied = copy.copy(loss.data)
            if previous is not None and abs(last - previous) < 1e-8:
                break
            if on_step is not None:
                on_step(step, loss)
            elif step > 10_000:
                return first, best
            print(f"{step=} {loss:.3f}", "%.3f" % loss, "{:.3f}".format(loss), copied)
        else:
            print("done", np.mean([float(one) for one in history]))
    return first, best, last, sums, table, parts, window, nested, slots, curve, array, queue


def closures(model, loader):
    seen, count = [], 0
    keep = seen.append

    def on_step(step, loss):
        nonlocal count
        count = count + 1
        keep(loss)  # maybe: GPU101
        seen[-1:] = [loss.detach()]

    def outer():
        last = None

        def inner(value):
            nonlocal last
            last = value
            return last

        return inner

    hold = outer()
    for batch in loader:
        loss = loss_of(model, Batch(*batch)).loss
        loss.backward()
        on_step(0, loss)
        hold(loss)
        (lambda value: seen.append(value))(loss)  # maybe: GPU101
        list(map(seen.append, [loss]))
    return seen, count


def comprehended(model, loader):
    losses = [loss_of(model, Batch(*batch)).loss for batch in loader]  # maybe: GPU101
    floats = [loss.item() for loss in losses]
    by_step = {step: loss_of(model, Batch(*batch)).loss for step, batch in enumerate(loader)}  # maybe: GPU101
    pairs = [(a, b) for a, b in zip(losses, floats) if a > b]
    some = any(loss_of(model, Batch(*batch)).loss > 1 for batch in loader)
    mean = sum(loss_of(model, Batch(*batch)).loss.item() for batch in loader) / len(loader)
    every = torch.stack(losses).mean() + reduce_all(losses)
    every.backward()
    return by_step, pairs, some, mean, {*floats}, [*losses, *floats], sorted(losses)[0]


async def asynchronous(model, stream):
    kept = []
    async for batch in stream:
        loss = loss_of(model, Batch(*batch)).loss
        loss.backward()
        kept.append(await asyncio.to_thread(loss.item))
        kept.append(loss)  # expect: GPU101
    async with stream.lock:
        return kept


def threaded(model, loader):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        futures = [pool.submit(loss_of, model, Batch(*batch)) for batch in loader]
        return [future.result().loss for future in futures]


def tries(model, loader, optimizer):
    kept, failures = [], 0
    iterator = iter(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            break
        try:
            result = loss_of(model, Batch(*batch))
            result.loss.backward()
        except (RuntimeError, ValueError) as error:
            failures += 1
            if failures > 3:
                raise RuntimeError("too often") from error
        else:
            kept.append(result.value)
        finally:
            optimizer.step()
            del batch
        kept += result.loss,  # expect: GPU101
        kept = kept + [result.loss]  # maybe: GPU101
        kept[0] = max(kept[0], result.loss)  # maybe: GPU101
    return kept


if __name__ == "__main__":
    net = nn.Linear(1000, 1000).cuda()
    data = torch.utils.data.DataLoader([(torch.zeros(1000), 1)] * 10_000, batch_size=32, shuffle=True)
    adam = torch.optim.Adam(net.parameters())
    for epoch in range(2):
        train(net, data, adam, on_step=None if epoch else print)
    closures(net, data)
    comprehended(net, data)
    asyncio.run(asynchronous(net, data))
    threaded(net, data)
    tries(net, data, adam)
    Path("loss.txt").write_text(str(total_loss))
