"""A framework switches grad off around a validation, whose losses it keeps for the epoch's end; where grad is on, a number is returned."""

import pytorch_lightning as pl
import torch
from torch import nn


class Tuned(pl.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def training_step(self, batch, number):
        return self.net(batch).mean()

    def validation_step(self, batch, number):
        return self.net(batch).pow(2).mean()

    def validation_epoch_end(self, costs):
        self.log("cost", torch.stack(costs).mean())

    @torch.enable_grad()
    def test_step(self, batch, number):
        return self.net(batch).pow(2).mean().item()

    def test_epoch_end(self, costs):
        self.log("cost", sum(costs) / len(costs))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
