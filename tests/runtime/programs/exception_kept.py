# holder: list `errors` in `train()`
# line: errors.append(error)
from setting import learnt, training


def check(out):
    scaled = out * 2
    if scaled.shape[0] == 16:
        raise ValueError("a batch of 16")


def train():
    model, optimizer = training()
    errors = []
    for _ in range(1000):
        x, _, _ = learnt(model, optimizer)
        try:
            check(model[0](x))
        except ValueError as error:
            errors.append(error)


train()
