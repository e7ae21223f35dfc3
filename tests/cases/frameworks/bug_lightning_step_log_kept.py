"""A base class's step hands back a log with the loss in it; training_step returns it and keeps it for the epoch."""

import lightning.pytorch as pl
import torch
from torch import nn


class Forecaster(pl.LightningModule):
    def __init__(self, network: nn.Module, loss: nn.Module):
        super().__init__()
        self.network = network
        self.loss = loss
        self.train_outputs = []
        self.valid_outputs = []

    def forward(self, x):
        return self.network(x)

    def step(self, batch):
        x, y = batch
        out = self(x)
        prediction = out["prediction"]
        loss = self.loss(prediction, y) if not self.predicting else None
        self.log("loss", loss)
        return {"loss": loss, "size": len(y)}, out

    def training_step(self, batch, index):
        log, out = self.step(batch)
        self.train_outputs.append(log)  # expect: GPU101
        return log

    def validation_step(self, batch, index):
        log, out = self.step(batch)
        self.valid_outputs.append(log)
        return log

    def on_train_epoch_end(self):
        print(torch.stack([log["loss"] for log in self.train_outputs]).mean())
        self.train_outputs.clear()

    def on_validation_epoch_end(self):
        self.valid_outputs.clear()
