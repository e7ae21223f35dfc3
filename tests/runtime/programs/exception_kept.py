# holder: list `errors` in `train()`
# line: errors.append(error)
from setting import batch, training
from torch import nn


def check(out):
    scaled = out * 2
    if scaled.shape[0] == 16:
        raise ValueError("a batch of 16")


def train():
    model, optimizer = training()
    errors = []
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        try:
            check(model[0](x))
        except ValueError as error:
            errors.append(error)


train()
