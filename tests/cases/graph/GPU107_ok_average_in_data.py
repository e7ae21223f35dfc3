"""An average that is given to a buffer's `data` takes in no graph; a list that an object calls `data` does."""

import torch
import torch.nn as nn


class Codebook(nn.Module):
    def __init__(self, size, width, decay=0.99):
        super().__init__()
        self.decay = decay
        self.codes = nn.Embedding(size, width)
        self.register_buffer("average", torch.randn(width, size))

    def forward(self, x, chosen):
        taken = torch.matmul(x.transpose(1, 2), chosen.float()).sum(0)
        if self.training:
            self.average.data = self.decay * self.average.data + (1 - self.decay) * taken
            self.codes.weight.data.copy_(self.average.t())
        return torch.matmul(chosen.float(), self.codes.weight)


def train(encoder, codebook, loader, optimizer):
    for x, chosen in loader:
        loss = codebook(encoder(x.cuda()), chosen.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
