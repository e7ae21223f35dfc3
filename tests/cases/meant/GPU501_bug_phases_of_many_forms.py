"""Cleaning between phases, by helpers, contexts and hooks; in handlers; where figures of memory are read."""

import gc
import os
import weakref
from contextlib import ExitStack, contextmanager

import psutil
import torch
import torch.nn.functional as F
from torch import nn
from torchvision import models


class Node:
    def __init__(self, parent=None):
        self.parent = parent
        self.children = []
        if parent is not None:
            parent.children.append(self)


def flush():
    gc.collect()
    torch.cuda.empty_cache()


def memory():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()


@contextmanager
def cleaned(*names):
    try:
        yield
    finally:
        flush()


def train_epoch(model, loader, optimizer):
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        gc.collect()  # expect: GPU502
        flush()  # maybe: GPU501, GPU502


@torch.no_grad()
def validate(model, loader):
    total = 0
    for x, y in loader:
        total += F.cross_entropy(model(x.cuda()), y.cuda()).item()
        torch.cuda.empty_cache()  # note: GPU501
    return total


def run(model, loaders, optimizer, path):
    for epoch in range(10):
        train_epoch(model, loaders[0], optimizer)
        validate(model, loaders[1])
        torch.save(model.state_dict(), path)
    for epoch in range(10):
        for x, y in loaders[0]:
            F.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in loaders[1]:
                print(model(x.cuda()).sum().item())
        flush()
    for fold in range(5):
        fresh = models.resnet18().cuda()
        train_epoch(fresh, loaders[0], torch.optim.Adam(fresh.parameters()))
        del fresh
        flush()


def figures(model, loader):
    values = []
    for x, _ in loader:
        before = memory()
        model(x.cuda()).sum().backward()
        values.append(memory() - before)
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.empty_cache()
        values.append(psutil.Process(os.getpid()).memory_info().rss)
    return values


def cycles(model, loader, optimizer):
    root = Node()
    for x, y in loader:
        node = Node(root)
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward(create_graph=True)  # maybe: GPU302
        node.loss = weakref.ref(loss)
        optimizer.step()
        gc.collect()  # maybe: GPU502
    return root


def every_so_often(model, loader, optimizer, interval=50):
    for step, (x, y) in enumerate(loader):
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        if step and step % interval == 0:
            torch.cuda.empty_cache()
        if not step % 1000:
            gc.collect()
        if step % 2 == 1:
            torch.cuda.empty_cache()  # note: GPU501
        if torch.cuda.memory_reserved() > 10**10:
            torch.cuda.empty_cache()


def handlers(model, loader, optimizer):
    skipped, last = 0, None
    for x, y in loader:
        try:
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
        except RuntimeError as error:
            if "out of memory" in str(error).lower():
                last = error
                print("| WARNING: out of memory, skipping", error)
                for p in model.parameters():
                    if p.grad is not None:
                        del p.grad
                torch.cuda.empty_cache()  # maybe: GPU402
                skipped += 1
                continue
            raise
        except torch.cuda.OutOfMemoryError:
            half = len(x) // 2
            torch.cuda.empty_cache()  # maybe: GPU402
            model(x[:half].cuda()).sum().backward()
            model(x[half:].cuda()).sum().backward()
        else:
            optimizer.step()
        finally:
            optimizer.zero_grad()
    return skipped, last


def smaller(model, build, batch=512):
    failed = False
    while batch:
        try:
            model(build(batch)).sum().backward()
        except RuntimeError as error:
            if not is_oom(error):
                raise
            failed = True
        if not failed:
            return batch
        gc.collect()  # maybe: GPU502
        torch.cuda.empty_cache()  # maybe: GPU501
        batch, failed = batch // 2, False
    return smaller(model, build, 1)


def is_oom(error):
    texts = ("CUDA out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "alloc_failed")
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(text in str(error) for text in texts)


def stacked(model, loader):
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for x, _ in loader:
            with cleaned("x"):
                print(model(x.cuda()).sum().item())
    guard = torch.inference_mode()
    guard.__enter__()
    for x, _ in loader:
        print(model(x.cuda()).sum().item())


def swap(first, second, loader):
    for x, _ in loader:
        first.cuda()
        hidden = first(x.cuda()).detach()  # expect: GPU201
        first.cpu()
        torch.cuda.empty_cache()  # low: GPU501
        second.cuda()
        print(second(hidden).sum().item())  # maybe: GPU201
        second.to("cpu")
        torch.cuda.empty_cache()  # low: GPU501


def ineffective(model, loader):
    big = torch.zeros(10_000, 10_000).cuda()
    torch.cuda.empty_cache()  # maybe: GPU405
    model = models.resnet50().cuda()
    model = None
    torch.cuda.empty_cache()
    outputs = [model for _ in loader]
    del outputs
    torch.cuda.empty_cache()
    return big.sum().item()


if __name__ == "__main__":
    net = models.resnet50().cuda()
    data = torch.utils.data.DataLoader([0] * 1000)
    adam = torch.optim.Adam(net.parameters())
    run(net, [data, data], adam, "net.pt")
    figures(net, data)
    cycles(net, data, adam)
    every_so_often(net, data, adam)
    handlers(net, data, adam)
    print(smaller(net, lambda n: torch.zeros(n, 3, 224, 224).cuda()))
    stacked(net, data)
    swap(net, nn.Linear(1000, 10), data)
    ineffective(net, data)
