"""The handler asks whether it is its own second try: that denies nothing about the memory."""

import torch
import torch.nn.functional as F
from lightning import LightningModule


class Meshes(LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def training_step(self, batch, batch_idx, again=False):
        try:
            return F.cross_entropy(self.net(batch["edges"]), batch["label"])
        except RuntimeError as error:
            if "out of memory" in str(error) and not again:
                for p in self.parameters():
                    p.grad = None
                torch.cuda.empty_cache()  # expect: GPU402
                return self.training_step(batch, batch_idx, again=True)
            else:
                raise error
