"""A loop that goes on after a step that failed, out of memory perhaps: emptying the cache may be meant for those."""

import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, log):
    for step, clouds in enumerate(loader):
        try:
            loss = model(clouds.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        except Exception as failed:
            log.warning("step %d skipped: %s", step, failed)
        torch.cuda.empty_cache()  # low: GPU501


def train_or_stop(model: nn.Module, loader, optimizer, log):
    for step, clouds in enumerate(loader):
        try:
            loss = model(clouds.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        except Exception as failed:
            log.error("step %d: %s", step, failed)
            raise
        torch.cuda.empty_cache()  # expect: GPU501
