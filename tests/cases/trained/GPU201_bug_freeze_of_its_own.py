"""A `freeze()` of the class's own, which freezes a part."""

import torch
from torch import nn


class Codec(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Conv2d(3, width, 3)
        self.decoder = nn.ConvTranspose2d(width, 3, 3)

    def freeze(self):
        self.encoder.requires_grad_(False)

    def forward(self, x):
        return self.decoder(self.encoder(x))


codec = Codec(64)
codec.load_state_dict(torch.load("codec.pt", map_location="cpu"))
codec.eval()
codec.freeze()
codec.to("cuda")
for batch in torch.load("batches.pt"):
    print(codec(batch.to("cuda")).mean().item())  # expect: GPU201
