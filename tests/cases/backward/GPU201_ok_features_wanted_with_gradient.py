"""Settled networks whose results the caller may differentiate."""

import torch
from torchvision.models import vgg19


class Features:
    def __init__(self, device):
        self.network = vgg19(weights="DEFAULT").features.to(device).eval()
        self.mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(1, 3, 1, 1)

    def __call__(self, image):
        return self.network(image - self.mean)
