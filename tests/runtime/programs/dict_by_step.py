# holder: dict `logs[...]` in `train()`
# line: logs[step] = {"loss": loss.detach(), "out": out.detach()}
from setting import batch, training
from torch import nn


def train():
    model, optimizer = training()
    logs = {}
    for step in range(1000):
        x, y = batch()
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logs[step] = {"loss": loss.detach(), "out": out.detach()}


train()
