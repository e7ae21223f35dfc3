# holder: list `window` in `running()`
# line: window.append(value)
# bytes: 512
from setting import learn, training


def running():
    window = []
    while True:
        value = yield len(window)
        window.append(value)


def train():
    model, optimizer = training()
    meter = running()
    next(meter)
    for _ in range(1000):
        loss = learn(model, optimizer)
        meter.send(loss.detach())


train()
