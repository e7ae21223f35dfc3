# A teacher in eval mode inside the training step is no evaluation loop.
# forwards-per-step: 2
import torch
from setting import batch, make_model, training
from torch import nn

model, optimizer = training()
teacher = make_model().eval()
for _ in range(1000):
    x, _ = batch()
    with torch.no_grad():
        target = teacher(x)
    loss = nn.functional.mse_loss(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
