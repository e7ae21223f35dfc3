"""The same function handed to somebody of whom nothing is known: he may call it under a guard, or for its gradients."""

import torch
from measuring import Bench
from torchvision import models

network = models.resnet18().cuda()


def hits(batch):
    images, labels = batch
    scores = network(images.cuda())  # low: GPU201
    return (scores.argmax(1).cpu() == labels).sum().item()


def measure(loader):
    return Bench(loader, hits, device=torch.device("cuda")).run()
