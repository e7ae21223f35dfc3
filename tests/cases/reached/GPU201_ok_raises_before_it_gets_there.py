"""A name that nothing binds is read right before: the script has never come as far as the network."""

import torch
from torchvision import models


def compare(loader):
    model = models.resnet50(pretrained=True).cuda().eval()
    for images, labels in loader:
        with open(log_path) as log:
            print(log.read())
        scores = model(images.cuda())
        print((scores.argmax(1) == labels.cuda()).sum().item())
