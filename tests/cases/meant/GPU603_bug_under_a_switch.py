"""Switches in upper case that have nothing to do with versions."""

import torch


def scaler(cfg):
    if cfg.TRAIN.FP16:
        return torch.cuda.amp.GradScaler()  # expect: GPU603
    return None
