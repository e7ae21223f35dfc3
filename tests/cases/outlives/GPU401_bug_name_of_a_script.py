"""A script's own name, which a method reads as well."""

import torch
import torch.nn.functional as F
from torch import nn

vocabulary = 32_000
model = nn.Sequential(nn.Embedding(vocabulary, 64), nn.Linear(64, vocabulary)).cuda()
optimizer = torch.optim.Adam(model.parameters())


class Shown:
    def __repr__(self):
        return str(logits.argmax(-1))


for tokens, targets in loader:
    logits = model(tokens.cuda())
    loss = F.cross_entropy(logits.view(-1, vocabulary), targets.cuda().view(-1))  # expect: GPU401
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
