"""What is indexed by one loop and then by another is a tensor, for all that is seen, where a number is read as only tensors give it."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(64, 64, batch_first=True)

    def forward(self, x, valid):
        out, _ = self.encoder(x)
        batch, length, size = out.shape
        picked = torch.zeros(batch, length, size, device="cuda")
        for i in range(batch):
            place = 0
            for j in range(length):
                if valid[i][j].item() == 1:  # low: GPU504
                    picked[i][place] = out[i][j]
                    place += 1
        return picked


class Likelihood(nn.Module):
    def forward(self, values, mask):
        batch, steps, size = values.size()
        found = []
        for i in range(batch):
            for j in range(size):
                found.append(torch.masked_select(values[i, :, j], mask[i, :, j]).mean())  # low: GPU504
        return torch.stack(found)
