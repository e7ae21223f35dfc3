# holder: tensor `total` in `evaluate()`
# line: total += nn.functional.cross_entropy(model(x), y)
# kind: eval
# graph: yes
from setting import batch, train_some, training
from torch import nn


def train():
    model, optimizer = training()
    for _ in range(3):
        train_some(model, optimizer, 6)
        model.eval()
        print(evaluate(model))


def evaluate(model):
    total = 0.0
    for _ in range(12):
        x, y = batch()
        total += nn.functional.cross_entropy(model(x), y)
    return total


train()
