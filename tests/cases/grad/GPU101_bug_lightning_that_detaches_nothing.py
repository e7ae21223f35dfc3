"""The project asks for a Lightning that no longer detaches what steps return beside the loss."""
# file: setup.py
from setuptools import setup

setup(name="solver", install_requires=["torch", "pytorch-lightning>=1.7"])
# file: solver.py
import pytorch_lightning as pl
import torch
from torch import nn


class Solver(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.criterion = nn.Conv2d(4, 4, 3), nn.MSELoss()

    def training_step(self, batch, index):
        x, y = batch
        found = self.net(x)
        scalar_loss = self.criterion(found[:, :1], y[:, :1])
        vector_loss = self.criterion(found[:, 1:], y[:, 1:])
        return {
            "loss": scalar_loss + vector_loss,
            "scalar_loss": scalar_loss,  # expect: GPU101
            "vector_loss": vector_loss,  # maybe: GPU101
        }

    def training_epoch_end(self, outputs):
        for name in outputs[0]:
            self.log(name, torch.stack([one[name] for one in outputs]).mean())
