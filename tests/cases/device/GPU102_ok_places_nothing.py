"""Accelerated computing may come later: so far this library places nothing."""

import torch
from torch import nn


class Encoder:
    def __init__(self, net: nn.Module):
        self.net = net.eval()

    def encode(self, images, path):
        for number, batch in enumerate(images):
            with torch.no_grad():
                encoded = self.net(batch)
            if number == 0:
                self.features = encoded
            else:
                self.features = torch.cat((self.features, encoded), 0)
        torch.save(self.features, path)
