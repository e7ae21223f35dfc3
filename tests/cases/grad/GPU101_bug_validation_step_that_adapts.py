"""Few-shot validation switches grad on, adapts by a gradient, and returns the query loss with its graph for the epoch's end."""

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch.func import functional_call


class FewShot(pl.LightningModule):
    def __init__(self, net: torch.nn.Module, inner_lr=0.01):
        super().__init__()
        self.net, self.inner_lr = net, inner_lr

    def _query_loss(self, task, second_order):
        (sx, sy), (qx, qy) = task
        names, weights = zip(*self.net.named_parameters())
        inner = F.cross_entropy(self.net(sx), sy)
        grads = torch.autograd.grad(inner, weights, create_graph=second_order)
        fast = {n: w - self.inner_lr * g for n, w, g in zip(names, weights, grads)}
        return F.cross_entropy(functional_call(self.net, fast, (qx,)), qy)

    def training_step(self, task, index):
        return self._query_loss(task, second_order=True)

    def validation_step(self, task, index):
        with torch.enable_grad():
            loss = self._query_loss(task, second_order=False)
        return {"val_loss": loss}  # expect: GPU101

    def validation_epoch_end(self, outputs):
        self.log("val_loss", torch.stack([row["val_loss"] for row in outputs]).mean())
