import contextlib

import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def train(model: DDP, loader, opt, accum, device):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        last = (i + 1) % accum == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x.to(device)), y.to(device)) / accum
            loss.backward()
        if last:
            opt.step()
            opt.zero_grad()


def train_inner(model, batches, opt, accum, device):
    for group in zip(*[iter(batches)] * accum):
        for x, y in group[:-1]:
            with model.no_sync():
                (F.cross_entropy(model(x.to(device)), y.to(device)) / accum).backward()
        x, y = group[-1]
        (F.cross_entropy(model(x.to(device)), y.to(device)) / accum).backward()
        opt.step()
        opt.zero_grad()
