# holder: dict `logs[...]` in `train()`
# line: logs[step] = {"loss": loss.detach(), "out": out.detach()}
from setting import learnt, training


def train():
    model, optimizer = training()
    logs = {}
    for step in range(1000):
        _, out, loss = learnt(model, optimizer)
        logs[step] = {"loss": loss.detach(), "out": out.detach()}


train()
