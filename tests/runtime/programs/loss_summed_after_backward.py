# holder: tensor `total` in `train()`
# line: total += loss
# bytes: 0
# nodes: 8
from setting import learn, training


def train():
    model, optimizer = training()
    total = 0.0
    for _ in range(1000):
        loss = learn(model, optimizer)
        total += loss


train()
