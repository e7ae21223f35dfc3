"""The collector runs first, the cache is emptied once more, or something else is done in between."""

import gc

import torch
from torch import nn


def release(model: nn.Module):
    model.cpu()
    gc.collect()
    torch.cuda.empty_cache()


def both_ways(model: nn.Module):
    model.cpu()
    torch.cuda.empty_cache()
    gc.collect()
    torch.cuda.empty_cache()


def two_phases(model: nn.Module, loader, score):
    torch.cuda.empty_cache()
    print(score(model, loader))
    gc.collect()


def long_after(model: nn.Module, loader, score):
    gc.collect()
    torch.cuda.empty_cache()
    print(score(model, loader))
    del model


def either(device):
    if device == "cuda":
        torch.cuda.empty_cache()
    else:
        gc.collect()


def of_the_host(rows):
    rows.clear()
    gc.collect()
