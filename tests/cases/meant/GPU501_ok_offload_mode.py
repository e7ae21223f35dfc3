"""One of two ways: the frugal one moves each result to the host and gives the memory back; that is what it is for."""

import torch
from torch import nn


class Restorer(nn.Module):
    def __init__(self, extract, length):
        super().__init__()
        self.extract, self.length = extract, length

    @torch.no_grad()
    def features(self, clips):
        self.frugal = clips.size(1) > self.length
        if self.frugal:
            found = []
            for i in range(0, clips.size(1)):
                found.append(self.extract(clips[:, i]).cpu())
                torch.cuda.empty_cache()
        else:
            found = self.extract(clips.flatten(0, 1))
        return found
