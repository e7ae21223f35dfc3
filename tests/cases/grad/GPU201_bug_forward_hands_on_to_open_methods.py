"""The forward chooses between two methods; a mask is made under no_grad, the network runs with grad."""

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50_000, 512)
        self.cell = nn.GRU(512, 512, batch_first=True)

    def forward(self, ids):
        return self.many(ids) if ids.shape[1] > 1 else self.one(ids)

    def one(self, ids):
        return self.cell(self.table(ids))[0]

    def many(self, ids):
        with torch.no_grad():
            mask = ids.ne(0).float()
        return self.cell(self.table(ids))[0] * mask.unsqueeze(-1)


def perplexity(loader):
    model = Recurrent().cuda().eval()
    total = 0.0
    for ids in loader:
        total += model(ids.cuda()).log_softmax(-1)[..., 0].sum().item()  # expect: GPU201
    return total
