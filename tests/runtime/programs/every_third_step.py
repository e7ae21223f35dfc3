# holder: list `samples` in `train()`
# line: samples.append(x)
# share: third
from setting import learnt, training


def train():
    model, optimizer = training()
    samples = []
    for step in range(1000):
        x, _, _ = learnt(model, optimizer)
        if step % 3 == 0:
            samples.append(x)


train()
