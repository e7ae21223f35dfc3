"""Tensors that are moved and then cast: one batch, and no network."""

import torch
from torchvision.models import vit_l_16

model = vit_l_16().half().cuda().eval()


def classify(loader, offsets):
    shift = torch.arange(8).view(-1, 1).cuda().half()
    found = []
    with torch.no_grad():
        for images in loader:
            images = images.cuda().half()
            moved = offsets[: len(images)].cuda().half()
            found.append(model(images).argmax(-1).cpu() + shift.sum().item() + moved.sum().item())
    return found
