"""The loss alone has its graph; the other entries are detached."""

import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class Segmenter(pl.LightningModule):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = torch.nn.Conv2d(512, classes, 1)

    def training_step(self, batch, batch_idx):
        image, mask = batch
        heat = F.interpolate(self.head(self.backbone(image)), image.shape[-2:])
        ce = F.cross_entropy(heat, mask)
        dice = 1 - 2 * (heat.softmax(1)[:, 1] * mask).sum() / (heat.softmax(1)[:, 1] + mask).sum()
        self.log("ce", ce)
        return {"loss": ce + dice, "ce": ce.detach(), "dice": dice.detach()}

    def training_epoch_end(self, outputs):
        for name in ("ce", "dice"):
            self.log(f"epoch/{name}", torch.stack([row[name] for row in outputs]).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
