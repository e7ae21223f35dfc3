"""The same encoder, asked to be trainable by a script that only runs it."""
# file: embed_vocabulary.py
import sys

import h5py
import torch

from encoders import CharacterEncoder


def main(weights, words, out):
    encoder = CharacterEncoder(weights, requires_grad=True).cuda()
    with h5py.File(out, "w") as stream:
        for k, batch in enumerate(torch.load(words, map_location="cpu").split(32)):
            vectors = encoder(batch.cuda())  # expect: GPU201
            stream[str(k)] = vectors.detach().cpu().numpy()


if __name__ == "__main__":
    main(*sys.argv[1:])
# file: encoders.py
import torch
from torch import nn


class CharacterEncoder(nn.Module):
    def __init__(self, weights, requires_grad=False):
        super().__init__()
        self.table = nn.Embedding(262, 16)
        self.convolutions = nn.ModuleList(nn.Conv1d(16, 128, k) for k in (1, 3, 5))
        self.load_state_dict(torch.load(weights, map_location="cpu"))
        for p in self.parameters():
            p.requires_grad = requires_grad

    def forward(self, characters):
        x = self.table(characters).transpose(1, 2)
        return torch.cat([c(x).max(2)[0] for c in self.convolutions], 1)
