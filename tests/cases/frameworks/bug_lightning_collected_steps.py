import lightning as L
import torch
from torch import nn


class LitSeg(L.LightningModule):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net
        self.training_losses = []
        self.validation_outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)  # maybe: GPU401
        self.training_losses.append(loss)  # expect: GPU101|GPU104
        return loss

    def on_train_epoch_end(self):
        self.log("mean", torch.stack(self.training_losses).mean())
        self.training_losses.clear()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.validation_outputs.append(logits)  # low: GPU102

    def on_validation_epoch_end(self):
        self.log("spread", torch.cat(self.validation_outputs).std())
        self.validation_outputs.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
