"""Switches in upper case that have nothing to do with versions."""

import contextlib

import torch

USE_AMP = True


def forward(net, x):
    with torch.cuda.amp.autocast() if USE_AMP else contextlib.nullcontext():  # expect: GPU603
        return net(x)


def scaler(cfg):
    if cfg.TRAIN.FP16:
        return torch.cuda.amp.GradScaler()  # expect: GPU603
    return None


def cached(cfg):
    if USE_AMP and not cfg.QUIET:
        print(torch.cuda.memory_cached())  # expect: GPU603
