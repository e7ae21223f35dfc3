"""What is put together of data on the host has to be moved; what is made on the device, once, or for few is none of it."""

import torch
from torch import nn


class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.register_buffer("steps", torch.zeros(1024, 1024).cuda())

    def forward(self, sentences, pictures):
        longest = max(len(one) for one in sentences)
        ids = torch.zeros(len(sentences), longest, 32).long()
        for i, one in enumerate(sentences):
            ids[i, : len(one), 0] = torch.tensor(one)
        b, c, h, w = pictures.shape
        copied = torch.zeros(b, c, h, w)
        copied[0].copy_(pictures[0])
        shifted = torch.ones(b, c, h, w) + pictures.cpu()
        there = torch.zeros(b, c, h, w, device=pictures.device).to(pictures.device)
        like = torch.zeros_like(pictures).cuda()
        noise = torch.randn(b, 100).cuda()
        return self.embed(ids.cuda()), copied.cuda(), shifted.cuda(), there + like, noise
