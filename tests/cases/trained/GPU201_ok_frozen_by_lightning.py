"""Lightning's own `freeze()` switches off the grad of all parameters, and evaluates."""
# file: codec.py
import pytorch_lightning as pl
from torch import nn


class Codec(pl.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Conv2d(3, width, 3)
        self.decoder = nn.ConvTranspose2d(width, 3, 3)

    def forward(self, x):
        return self.decoder(self.encoder(x))
# file: compare.py
import torch
from codec import Codec

codec = Codec(64)
codec.load_state_dict(torch.load("codec.pt", map_location="cpu"))
codec.freeze()
codec.to("cuda")
for batch in torch.load("batches.pt"):
    small = codec.encoder(batch.to("cuda"))
    print(codec.decoder(small).mean().item(), codec(batch.to("cuda")).std().item())
