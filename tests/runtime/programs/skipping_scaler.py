# GradScaler skips every third step because of infinite gradients; each still is a step.
# forwards-per-step: 1
import torch
from setting import batch, device, training
from torch import nn

model, optimizer = training()
scaler = torch.amp.GradScaler(device.type, init_scale=8.0)
for step in range(1000):
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x), y)
    if step % 3 == 2:
        loss = loss * float("inf")
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
