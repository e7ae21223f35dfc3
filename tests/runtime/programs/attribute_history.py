# holder: list `self.history` of `Trainer`
# line: self.history.append(out.detach())
# bytes: 512
from setting import learnt, training


class Trainer:
    def __init__(self):
        self.model, self.optimizer = training()
        self.history = []

    def step(self):
        _, out, _ = learnt(self.model, self.optimizer)
        self.history.append(out.detach())


def train():
    trainer = Trainer()
    for _ in range(1000):
        trainer.step()


train()
