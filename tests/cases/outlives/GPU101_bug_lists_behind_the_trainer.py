"""What Lightning's trainer has besides its windows may be bounded; a list of the module is the program's."""

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn


class Picker(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)
        self.losses = []

    def training_step(self, batch, index):
        x, y = batch
        total = F.cross_entropy(self.head(x), y)
        self.trainer.noted.append(total)  # low: GPU101
        self.losses.append(total)  # expect: GPU101
        return {"loss": total}
