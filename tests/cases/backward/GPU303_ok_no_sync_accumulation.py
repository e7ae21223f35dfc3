import contextlib

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
