"""The steps of a validation and a test, which a framework runs without grad, share one of the class's own; the network comes from a factory."""

import pytorch_lightning as pl
import torch
from torch import nn


class Flow(pl.LightningModule):
    def __init__(self, net, width):
        super().__init__()
        self.net = net(width=width)

    def shared(self, batch):
        return nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def training_step(self, batch, number):
        return self.shared(batch)

    def eval_step(self, batch, number, name):
        loss = self.shared(batch)
        self.log(f"{name}/loss", loss)
        return {"loss": loss}

    def eval_epoch_end(self, outputs, name):
        self.log(f"{name}/mean", torch.stack([one["loss"] for one in outputs]).mean())

    def validation_step(self, batch, number):
        return self.eval_step(batch, number, "val")

    def validation_epoch_end(self, outputs):
        self.eval_epoch_end(outputs, "val")

    def test_step(self, batch, number):
        return self.eval_step(batch, number, "test")

    def test_epoch_end(self, outputs):
        self.eval_epoch_end(outputs, "test")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
