# autocast keeps low-precision copies of the weights until its region ends.
import torch
from setting import batch, device, training
from torch import nn


def train():
    model, optimizer = training()
    for _ in range(1000):
        x, y = batch()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
