import lightning as L
import torch
from torch import nn


class Metric(L.LightningModule):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)

    def validation_step(self, batch, index):
        batch_input, batch_target = batch
        found = [self.forward(**form) for form in batch_input]
        scores = torch.stack([item.score for item in found]).mean(dim=0)
        self.log("error", (scores - batch_target).abs().mean())
