"""A Lightning module that a script loads and runs by a method of its own: outside of the Trainer nobody switches grad off."""
# file: predict.py
import sys
from pathlib import Path

import torch
from torchvision.io import read_image, write_png

from cloudmask import CloudMask


def main(checkpoint, folder):
    model = CloudMask.load_from_checkpoint(checkpoint).cuda().eval()
    for path in Path(folder).glob("*.png"):
        tile = read_image(str(path)).float().div(255).unsqueeze(0).cuda()
        mask = model.mask_of(tile)  # expect: GPU201@m
        write_png(mask[0].byte().mul(255).cpu(), str(path.with_suffix(".mask.png")))


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
        return self.net(tile) > 0  # expect: GPU201@m

    def training_step(self, batch, index):
        tile, mask = batch
        return nn.functional.binary_cross_entropy_with_logits(self.net(tile), mask)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
