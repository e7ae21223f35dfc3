# holder: list `losses` in `train()`
# line: losses.append(loss)
# bytes: 512
from setting import batch, training
from torch import nn


def train():
    model, optimizer = training()
    losses = []
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)


train()
