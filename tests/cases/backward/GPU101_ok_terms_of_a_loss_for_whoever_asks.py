"""Losses made of many terms, whose extractor is in eval mode: that is its own affair. The sums go, with their graphs, to
callers who train what was given; a try-out under `__main__` is no evaluation."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import models


class SliceSimilarity:
    def __init__(self, device):
        self.extractor = models.vgg16(pretrained=True).features.to(device).eval()
        self.distance = nn.L1Loss()

    def similarity_loss(self, made, wanted):
        total = 0.0
        depth = made.shape[2]
        for z in range(depth):
            ours = self.extractor(made[:, :, z])
            theirs = self.extractor(wanted[:, :, z])  # maybe: GPU201
            total += self.distance(ours, theirs.detach()) / depth
        return total

    def along_two(self, made, wanted):
        down, across = 0.0, 0.0
        height, width = made.shape[3], made.shape[4]
        for y in range(height):
            term = F.mse_loss(self.extractor(made[:, :, :, y]), self.extractor(wanted[:, :, :, y]))
            down += term / height
        for x in range(width):
            term = F.mse_loss(self.extractor(made[..., x]), self.extractor(wanted[..., x]))
            across = across + term / width
        both = down + across
        return torch.sum(both)


def crops_apart(made, wanted, corners):
    extractor = models.resnet18(pretrained=True).cuda()
    extractor.eval()
    terms = []
    for top, left in corners:
        ours = extractor(made[:, :, top : top + 64, left : left + 64])  # maybe: GPU201
        theirs = extractor(wanted[:, :, top : top + 64, left : left + 64])
        terms.append(F.mse_loss(ours, theirs))
    return sum(terms)


if __name__ == "__main__":
    similarity = SliceSimilarity("cuda")
    first, second = torch.rand(1, 3, 8, 64, 64).cuda(), torch.rand(1, 3, 8, 64, 64).cuda()
    print(similarity.similarity_loss(first, second))
    print(similarity.along_two(first, second))
