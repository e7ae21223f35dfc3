import gc

import torch
from torch import nn


def fits(model, batch, device):
    x, y = batch
    ok = True
    try:
        nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
    except RuntimeError as e:
        if "out of memory" not in str(e):
            raise
        ok = False
    model.zero_grad()
    gc.collect()
    torch.cuda.empty_cache()
    return ok


def largest(model, make, device, candidates=(256, 128, 64, 32)):
    for bs in candidates:
        if fits(model, make(bs), device):
            return bs
    return 1
