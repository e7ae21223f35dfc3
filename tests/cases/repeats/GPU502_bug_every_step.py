import gc

import torch
import torch.nn.functional as F


def train_epoch(model, loader, optimizer):
    model.train()
    for batch in loader:
        x, y = batch["image"].cuda(), batch["label"].cuda()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del x, y
        gc.collect()  # expect: GPU502
