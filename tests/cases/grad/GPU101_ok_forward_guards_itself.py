"""A module whose forward switches grad off around its extractor: what it gives has no graph."""

import pytorch_lightning as pl
import torch
from extractors import make_extractor
from torch import nn


class Patches(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.extractor = make_extractor(name)
        self.tiler = None

    def forward(self, images):
        with torch.no_grad():
            features = self.extractor(images)
            found = self.join(features)
        if self.tiler:
            found = self.tiler.untile(found)
        return found if self.training else self.tiler.score(found)

    def join(self, features):
        return self.tiler.join(list(features.values()))


class Detector(pl.LightningModule):
    def __init__(self, name):
        super().__init__()
        self.network = Patches(name)
        self.found = []

    def training_step(self, batch, batch_index):
        self.network.extractor.eval()
        found = self.network(batch["image"])
        self.found.append(found.cpu())

    def on_validation_start(self):
        torch.vstack(self.found)
