"""A network gives several tensors; the first of them grows by concatenation over an evaluation."""

import torch
from torch import nn


class Extractor:
    def __init__(self, network: nn.Module):
        self.network = network.cuda()

    def extract(self, loader):
        self.network.eval()
        features = 0
        for number, (images, _) in enumerate(loader):
            local, middle, whole = self.network(images.cuda())  # expect: GPU201
            if number == 0:
                features = local
            else:
                features = torch.cat((features, local), 0)  # expect: GPU101
        return features
