"""The same with a base trainer that only writes the figures down."""
# file: world/trainer.py
class Trainer:
    def __init__(self, model, optimizer, log):
        self.model, self.optimizer, self.log = model.cuda(), optimizer, log

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def train_on(self, batch):
        _, figures = self.losses(batch)
        print({name: float(value) for name, value in figures.items()})
# file: world/imagined.py
from torch.nn import functional as F

from world.trainer import Trainer


class Imagined(Trainer):
    def losses(self, batch):
        reward = self.model(batch["frames"].cuda())
        value_loss = F.mse_loss(reward, batch["reward"].cuda())
        self.update(value_loss)
        return value_loss.item(), {"value": value_loss, "reward": reward.mean().item()}
