# holder: list `firsts` in `train()`
# line: firsts.append(x[0])
# bytes: 2048
from setting import learnt, training


def train():
    model, optimizer = training()
    firsts = []
    for _ in range(1000):
        x, _, _ = learnt(model, optimizer)
        firsts.append(x[0])


train()
