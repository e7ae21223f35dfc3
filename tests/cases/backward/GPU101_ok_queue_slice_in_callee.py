import lightning as L
import torch
import torch.nn.functional as F
from torch import nn


class Contrastive(L.LightningModule):
    def __init__(self, backbone: nn.Module, size=4096, dim=64):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(512, dim)
        self.register_buffer("bank", torch.randn(size, dim))
        self.register_buffer("cursor", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def remember(self, z):
        start = int(self.cursor)
        self.bank[start : start + z.shape[0], :] = z
        self.cursor[0] = (start + z.shape[0]) % self.bank.shape[0]

    def training_step(self, batch, batch_idx):
        first, second = batch
        z1 = F.normalize(self.head(self.backbone(first)), dim=-1)
        z2 = F.normalize(self.head(self.backbone(second)), dim=-1)
        nearest = self.bank[(z1 @ self.bank.T).argmax(1)]
        loss = 2 - 2 * (nearest * z2).sum(-1).mean()
        self.remember(z1)
        return loss
