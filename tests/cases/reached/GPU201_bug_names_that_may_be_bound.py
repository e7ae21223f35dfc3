"""Names that look unbound and are not, or whose error is caught, or that are read under a condition only."""

import sys

import torch
from torchvision import models


def main():
    global target
    target = torch.load(sys.argv[2])


def attack(loader, quiet=sys.flags.quiet):
    model = models.resnet50(pretrained=True).cuda()
    model.eval()
    right = 0
    for images, labels in loader:
        labels = labels + target
        if not quiet:
            print(undefined_figures)
        try:
            print(display_name)
        except NameError:
            pass
        right += (model(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # expect: GPU201
    return right


def spread(loader):
    model = models.resnet50(pretrained=True).cuda().eval()
    figures = []
    for images, _ in loader:
        names = [name for name in sys.modules if name] or undefined_names
        assert len(names) > 1, undefined_message
        figures.append(model(images.cuda()).std().item())  # expect: GPU201
    return figures
