# holder: tensor `total` in `evaluate()`
# line: total += nn.functional.cross_entropy(model(x), y)
# kind: eval
# graph: yes
from setting import batch, training
from torch import nn


def train():
    model, optimizer = training()
    for _ in range(3):
        for _ in range(6):
            x, y = batch()
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        print(evaluate(model))
        model.train()


def evaluate(model):
    total = 0.0
    for _ in range(12):
        x, y = batch()
        total += nn.functional.cross_entropy(model(x), y)
    return total


train()
