"""Indices that come to the host as one list before words are looked up by them: nothing is waited for word by word."""

import torch
from torch import nn

model = nn.Linear(64, 5000).cuda()
words = ["the"] * 5000


@torch.no_grad()
def translate(loader):
    for inputs in loader:
        best = model(inputs.cuda()).argmax(1)
        ids = best.cpu().tolist()
        print(" ".join(words[one] for one in ids), sum(1 for one in ids if one == 3))


translate(torch.utils.data.DataLoader(torch.zeros(640, 64), 64))
