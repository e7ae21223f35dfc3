"""A subclass makes the losses and the figures; the trainer it derives from, in another file, keeps the figures of a step."""
# file: world/trainer.py
class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model.cuda(), optimizer
        self.latest, self.wanted = {}, True

    def losses(self, batch, quiet=False):
        raise NotImplementedError

    def update(self, network, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def train_on(self, batch):
        _, figures = self.losses(batch, quiet=not self.wanted)
        if self.wanted:
            self.latest = figures
            self.wanted = False

    def report(self):
        self.wanted = True
        return dict(self.latest)
# file: world/imagined.py
from torch.nn import functional as F

from world.trainer import Trainer


class Imagined(Trainer):
    def losses(self, batch, quiet=False):
        state, reward = self.model(batch["frames"].cuda())
        value_loss = F.mse_loss(reward, batch["reward"].cuda())
        self.update(self.model, value_loss)
        picture_loss = F.mse_loss(self.model.decode(state.detach()), batch["frames"].cuda())
        self.update(self.model.decoder, picture_loss)
        figures = {}
        if not quiet:
            figures["value"] = value_loss  # expect: GPU101
            figures["picture"] = picture_loss.item()
            figures["reward"] = reward.mean().item()
        return (value_loss.item(), picture_loss.item()), figures


class Dreamed(Trainer):
    def losses(self, batch, quiet=False):
        reward = self.model(batch["frames"].cuda())[1]
        loss = F.l1_loss(reward, batch["reward"].cuda())
        self.update(self.model, loss)
        return loss.item(), {"loss": loss.detach(), "spread": reward.std().item()}
