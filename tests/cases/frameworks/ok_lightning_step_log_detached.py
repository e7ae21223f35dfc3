"""The same with the loss detached in what is kept."""

import lightning.pytorch as pl
import torch
from torch import nn


class Forecaster(pl.LightningModule):
    def __init__(self, network: nn.Module, loss: nn.Module):
        super().__init__()
        self.network = network
        self.loss = loss
        self.train_outputs = []
        self.losses = []

    def step(self, batch):
        x, y = batch
        loss = self.loss(self.network(x), y)
        self.log("loss", loss)
        return {"loss": loss, "size": len(y)}, y

    def training_step(self, batch, index):
        log, _ = self.step(batch)
        detached = {name: v.detach() if isinstance(v, torch.Tensor) else v for name, v in log.items()}
        self.train_outputs.append(detached)
        self.losses.append(log["loss"].detach())
        return log

    def on_train_epoch_end(self):
        self.train_outputs.clear()
        self.losses.clear()
