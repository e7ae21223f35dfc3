"""The features are taken, and the model is to go; but the caller still has it."""

import gc

import torch


def regress(*, model, features_of, data, sweep):
    features = features_of(model, data)
    # make room
    del model  # note: GPU405
    gc.collect()
    torch.cuda.empty_cache()
    return sweep(features.cuda())


def main(build, features_of, data, sweep):
    model = build().cuda()
    return regress(model=model, features_of=features_of, data=data, sweep=sweep)
