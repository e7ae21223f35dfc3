"""The same, all of them cut; and a dict whose one attached entry is the loss that others go backward through."""

import torch
import torch.nn.functional as F
from torch import nn


class Distilling(nn.Module):
    def __init__(self, student: nn.Module, teacher: nn.Module):
        super().__init__()
        self.student, self.teacher = student, teacher.requires_grad_(False)

    def losses(self, batch, prefix=""):
        with torch.no_grad():
            wanted = self.teacher(batch["x"])
        seen = self.student(batch["x"])
        task = F.cross_entropy(seen, batch["y"])
        gap = F.mse_loss(seen, wanted)
        figures = {}
        figures[f"{prefix}task"] = task.detach().mean().cpu()
        figures[f"{prefix}gap"] = gap.detach().cpu().mean()
        figures[f"{prefix}hits"] = (seen.argmax(1) == batch["y"]).float().mean().cpu()
        return task + 0.5 * gap, figures

    def forward(self, batch):
        seen = self.student(batch["x"])
        loss = F.cross_entropy(seen, batch["y"])
        return {"loss": loss, "hits": (seen.argmax(1) == batch["y"]).float().mean().item()}
