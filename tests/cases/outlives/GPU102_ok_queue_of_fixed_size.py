import lightning as L
import torch
import torch.nn.functional as F
from torch import nn


class Momentum(L.LightningModule):
    def __init__(self, online: nn.Module, target: nn.Module, size=4096, dim=64):
        super().__init__()
        self.online, self.target = online, target
        self.register_buffer("keys", torch.randn(2, size, dim))
        self.at = 0

    @torch.no_grad()
    def enqueue(self, new):
        n = new.shape[1]
        self.keys[:, self.at : self.at + n, :] = new
        self.at = (self.at + n) % self.keys.shape[1]

    def training_step(self, batch, batch_idx):
        a, b = batch
        q = F.normalize(self.online(a), dim=-1)
        with torch.no_grad():
            k = F.normalize(self.target(b), dim=-1)
        loss = F.cross_entropy(q @ self.keys[0].T, torch.zeros(len(q), dtype=torch.long, device=q.device))
        self.enqueue(torch.stack((k, k)))
        return loss
