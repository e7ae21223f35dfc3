"""A name that nothing binds is read right before: the script has never come as far as the network."""

import torch
from torchvision import models


def attack(loader, attacker):
    model = models.resnet50(pretrained=True).cuda()
    model.eval()
    right = total = 0
    for images, labels in loader:
        images, labels = images.cuda(), target.cuda()  # maybe: GPU505
        scores = model(images)
        right += (scores.argmax(1) == labels).sum().item()
        total += len(labels)
    return right / total


def compare(loader):
    model = models.resnet50(pretrained=True).cuda().eval()
    for images, labels in loader:
        with open(log_path) as log:
            print(log.read())
        scores = model(images.cuda())
        print((scores.argmax(1) == labels.cuda()).sum().item())
