"""Each batch is run twice, the second time mirrored."""

import torch


def describe(model, loader):
    found = torch.FloatTensor()
    for pictures, _ in loader:
        both = torch.zeros(pictures.size(0), 512)
        for side in range(2):
            if side == 1:
                pictures = pictures.flip(3)
            out = model(pictures.to("cuda"))  # expect: GPU201
            both = both + out[0].data.cpu()
        found = torch.cat((found, both), 0)
    return found
