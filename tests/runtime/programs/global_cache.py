# holder: global list `CACHE`
# line: CACHE.append(model(x).detach())
# bytes: 512
import torch
from setting import batch, make_model, training
from torch import nn

CACHE = []


def features(model, x):
    with torch.no_grad():
        CACHE.append(model(x).detach())
    return CACHE[-1]


def train():
    model, optimizer = training()
    teacher = make_model()
    for _ in range(1000):
        x, _ = batch()
        loss = nn.functional.mse_loss(model(x), features(teacher, x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
