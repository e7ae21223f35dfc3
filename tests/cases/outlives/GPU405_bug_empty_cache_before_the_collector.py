"""The collector lets go of what only cycles hold: emptied before it, the cache keeps that."""

import gc

import torch
from torch import nn


def release(model: nn.Module):
    model.cpu()
    torch.cuda.empty_cache()  # note: GPU405
    gc.collect()


def between_models(names, build, score):
    for name in names:
        model = build(name).cuda()
        print(name, score(model))
        model = None
        torch.cuda.empty_cache()  # note: GPU405
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.reset_peak_memory_stats()


def and_something_else_goes_later(names, build, score):
    model = build(names[0]).cuda()
    torch.cuda.empty_cache()  # note: GPU405
    gc.collect()
    print(score(model))
    del model


def clean():
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # note: GPU405
        print("emptied")
        gc.collect()


if __name__ == "__main__":
    clean()
