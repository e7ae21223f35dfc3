"""What the host works out has to be moved; what is put into a tensor on the host may stay there."""

import numpy as np
import torch
from alignment.core import best_path
from torch import nn


class Aligner(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv1d(80, 256, 5, padding=2)
        self.table = filled(256, torch.device("cuda"))

    def forward(self, sound, mask):
        scores = self.encoder(sound)
        path = np.zeros(scores.shape, dtype=np.int32)
        best_path(path, scores.detach().cpu().numpy())
        kept = torch.zeros(scores.shape[0], scores.shape[1], mask.shape[-1])
        kept[:, :, : scores.shape[-1]] = scores.detach().cpu()
        self.shown = kept
        table = self.table.repeat(len(sound), 1, 1).to(sound.device)
        return torch.from_numpy(path).to(scores.device) * scores + table.mean()


def filled(size, device):
    return torch.zeros(1, size, size, device=device)


def train(loader):
    model = Aligner().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for sound, mask in loader:
        loss = model(sound.cuda(), mask.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train([])
