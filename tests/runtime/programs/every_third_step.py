# holder: list `samples` in `train()`
# line: samples.append(x)
# share: third
from setting import batch, training
from torch import nn


def train():
    model, optimizer = training()
    samples = []
    for step in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 3 == 0:
            samples.append(x)


train()
