"""The same module, run by the Trainer, whose `predict` switches grad off."""
# file: predict.py
import sys

import pytorch_lightning as pl
import torch

from cloudmask import CloudMask
from tiles import loader_of


def main(checkpoint, folder):
    model = CloudMask.load_from_checkpoint(checkpoint)
    trainer = pl.Trainer(accelerator="gpu", devices=1, logger=False)
    masks = trainer.predict(model, loader_of(folder))
    torch.save(masks, "masks.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
# file: cloudmask.py
import pytorch_lightning as pl
import torch
from torch import nn


class CloudMask(pl.LightningModule):
    def __init__(self, width=64):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 1, 3, padding=1))

    def mask_of(self, tile):
        return self.net(tile) > 0

    def predict_step(self, batch, index):
        return self.mask_of(batch).byte().cpu()

    def training_step(self, batch, index):
        tile, mask = batch
        return nn.functional.binary_cross_entropy_with_logits(self.net(tile), mask)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
