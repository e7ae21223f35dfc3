# holder: list `firsts` in `train()`
# line: firsts.append(x[0])
# bytes: 2048
from setting import batch, training
from torch import nn


def train():
    model, optimizer = training()
    firsts = []
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        firsts.append(x[0])


train()
