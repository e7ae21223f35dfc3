"""The same call in the hooks of one module: a training step is a step, what a prediction of one file takes is not shown."""

import lightning.pytorch as pl
import torch
from torch import nn


class Enhancer(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv1d(1, 64, 9, padding=4)

    def training_step(self, batch, batch_idx):
        torch.cuda.empty_cache()  # expect: GPU501
        noisy, clean = batch
        return nn.functional.l1_loss(self.net(noisy), clean)

    @torch.no_grad()
    def predict_step(self, batch, batch_idx):
        torch.cuda.empty_cache()  # low: GPU501
        waves = batch["noisy"]
        for _ in range(30):
            waves = self.net(waves)
        return waves.cpu()

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters())
