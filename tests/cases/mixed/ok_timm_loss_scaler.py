import time

import torch
from torch import nn


class NativeScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cuda")

    def __call__(
        self, loss, optimizer, clip_grad=None, parameters=None, create_graph=False, need_update=True
    ):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if need_update:
            if clip_grad is not None:
                self._scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            self._scaler.step(optimizer)
            self._scaler.update()


class AverageMeter:
    def __init__(self):
        self.sum, self.count, self.avg = 0, 0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def train_one_epoch(model: nn.Module, criterion, loader, optimizer, device, loss_scaler, max_norm):
    losses, update_time = AverageMeter(), AverageMeter()
    end = time.time()
    for samples, targets in loader:
        samples, targets = samples.to(device), targets.to(device)
        with torch.autocast("cuda"):
            loss = criterion(model(samples), targets)
        loss_value = loss.item()
        optimizer.zero_grad()
        loss_scaler(loss, optimizer, clip_grad=max_norm, parameters=model.parameters())
        losses.update(loss_value, samples.size(0))
        update_time.update(time.time() - end)
        end = time.time()
    return losses.avg
