# holder: list `seen` in the closure of `make_logger.log()`
# line: seen.append(value)
# bytes: 512
from setting import learn, training


def make_logger():
    seen = []

    def log(value):
        seen.append(value)
        return len(seen)

    return log


def train():
    model, optimizer = training()
    log = make_logger()
    for _ in range(1000):
        loss = learn(model, optimizer)
        log(loss.detach())


train()
