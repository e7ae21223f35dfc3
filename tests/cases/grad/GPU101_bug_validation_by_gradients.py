"""A framework's validation that switches grad on returns a loss with its graph, which the framework keeps for the epoch's end."""

import pytorch_lightning as pl
import torch
from torch import nn


class Tuned(pl.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def training_step(self, batch, number):
        return self.net(batch).mean()

    @torch.enable_grad()
    def validation_step(self, batch, number):
        cost = self.net(batch).pow(2).mean()
        return cost  # expect: GPU101

    def validation_epoch_end(self, costs):
        self.log("cost", torch.stack(costs).mean())

    def test_step(self, batch, number):
        return self.net(batch).pow(2).mean()

    def test_epoch_end(self, costs):
        self.log("cost", torch.stack(costs).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
