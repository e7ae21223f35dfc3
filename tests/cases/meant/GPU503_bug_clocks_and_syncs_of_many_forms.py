"""Synchronization, cleaning and clocks: in steps, between phases, for measurements, in handlers and helpers."""

import contextlib
import functools
import gc
import logging
import sys
import time

import torch
import torch.nn.functional as F
from tqdm import tqdm, trange


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        torch.cuda.synchronize()
        began = time.perf_counter()
        result = function(*args, **kwargs)
        torch.cuda.synchronize()
        print(time.perf_counter() - began)
        return result

    return wrapper


class Timer:
    def __enter__(self):
        torch.cuda.synchronize()
        self.began = time.time()
        return self

    def __exit__(self, *args):
        torch.cuda.synchronize()
        self.seconds = time.time() - self.began


def clean(tensors=None):
    if tensors is not None:
        del tensors  # note: GPU405
    gc.collect()
    torch.cuda.empty_cache()


def report(tag):
    used = torch.cuda.memory_allocated() / 2**20
    print(tag, used, torch.cuda.max_memory_allocated())
    torch.cuda.reset_peak_memory_stats()


@timed
def epoch(model, loader, optimizer, log_every=10):
    model.train()
    total, seen = torch.zeros(1, device="cuda"), 0
    for step, (x, y) in enumerate(tqdm(loader)):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        torch.cuda.synchronize()  # expect: GPU503
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        seen += x.size(0)
        if step % log_every == 0:
            logging.info("%d %.3f", step, loss.item())
            torch.cuda.empty_cache()  # note: GPU501
            gc.collect()  # note: GPU502
        clean()  # maybe: GPU501, GPU502
        del x, y, out
        torch.cuda.empty_cache()  # expect: GPU501
        gc.collect()  # expect: GPU502
        if step == 0:
            report("first")
    return total.item() / seen


def phases(model, train_loader, val_loader, optimizer, epochs):
    for number in trange(epochs):
        epoch(model, train_loader, optimizer)
        torch.cuda.empty_cache()
        with torch.no_grad():
            for x, y in val_loader:
                F.cross_entropy(model(x.cuda()), y.cuda()).item()
        gc.collect()
        torch.cuda.empty_cache()
        report(f"epoch {number}")


def elements(model, loader):
    confusion = torch.zeros(10, 10)
    boxes, scores, pairs = [], [], {}
    with torch.no_grad():
        for x, y in loader:
            out = model(x.cuda())
            predicted = out.argmax(1)
            for i in range(len(predicted)):
                confusion[y[i].item(), predicted[i].item()] += 1  # maybe: GPU504
                scores.append(float(out[i, predicted[i]]))  # maybe: GPU504
            for row, label in zip(out, predicted):
                pairs[label.item()] = row.max().item()  # maybe: GPU504
            for value in predicted.tolist():
                pairs[value] = pairs.get(value, 0) + 1
            for value in predicted:
                if value == 3:  # maybe: GPU504
                    boxes.append(value.cpu().numpy())  # maybe: GPU504
            host = predicted.cpu()
            for value in host:
                boxes.append(int(value))
            for number, row in enumerate(out.softmax(-1)):
                top, index = row.topk(1)
                boxes.append((number, index.item(), top.item()))  # maybe: GPU504
            a, b = out.max(1)
            for n in range(out.shape[0]):
                boxes += [a[n].item() for _ in range(2)]  # maybe: GPU504
    return confusion, boxes, scores, pairs


def sizes(model, batch):
    while batch > 1:
        try:
            x = torch.zeros(batch, 3, 224, 224, device="cuda")
            model(x).sum().backward()
            break
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            print("too large", file=sys.stderr)
            model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()  # maybe: GPU402
            batch //= 2
    return batch


def robust(model, loader, optimizer):
    failed = 0
    for x, y in loader:
        try:
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
        except torch.cuda.OutOfMemoryError:
            failed += 1
            for p in model.parameters():
                p.grad = None
            torch.cuda.empty_cache()  # maybe: GPU402
            continue
        except RuntimeError as error:
            if "CUDA out of memory" in str(error):
                print(torch.cuda.memory_summary())
                gc.collect()  # maybe: GPU402
                torch.cuda.empty_cache()  # maybe: GPU402
                loss = F.cross_entropy(model.cpu()(x), y)
                model.cuda()
            else:
                raise error
        optimizer.step()
    return failed


def benchmark(model, x, rounds=100):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(10):
        model(x)
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(rounds):
        start.record()
        model(x)
        end.record()
        torch.cuda.synchronize()
        print(start.elapsed_time(end))
    print((time.time() - began) / rounds)
    with Timer() as timer:
        model(x)
    return timer.seconds


class Stream:
    def __init__(self, model):
        self.model = model.cuda()
        self.stream = torch.cuda.Stream()

    def prefetch(self, loader):
        for batch in loader:
            with torch.cuda.stream(self.stream):
                moved = batch.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            self.stream.synchronize()
            yield moved

    def run(self, loader, optimizer):
        for batch in self.prefetch(loader):
            self.model(batch).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            with contextlib.suppress(RuntimeError):
                torch.cuda.synchronize()  # maybe: GPU503
