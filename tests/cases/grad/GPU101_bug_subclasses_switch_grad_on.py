"""What a step calls only subclasses have, in other files, and one of them switches grad on."""
# file: episodes.py
import pytorch_lightning as pl
from torch import optim


class Episodes(pl.LightningModule):
    def training_step(self, batch, index):
        loss, _ = self.adapted(batch)
        return loss

    def validation_step(self, batch, index):
        loss, accuracy = self.adapted(batch)
        self.log("accuracy", accuracy)
        return loss  # low: GPU101

    def configure_optimizers(self):
        return optim.Adam(self.parameters())
# file: maml.py
import torch
from episodes import Episodes


class Maml(Episodes):
    @torch.enable_grad()
    def adapted(self, batch):
        learner = self.model.clone()
        learner.adapt(self.loss(learner(batch[0]), batch[1]))
        scores = learner(batch[2])
        return self.loss(scores, batch[3]), (scores.argmax(-1) == batch[3]).float().mean()
