# holder: list `Meter.values['loss']` of class `Meter`
# line: Meter.values.setdefault(name, []).append(value)
from setting import learn, training


class Meter:
    values = {}  # noqa: RUF012

    @staticmethod
    def update(name, value):
        Meter.values.setdefault(name, []).append(value)


def train():
    model, optimizer = training()
    for _ in range(1000):
        loss = learn(model, optimizer)
        Meter.update("loss", loss.detach())


train()
