"""A switch at the top of a script, and an evaluation without grad."""

import torch
from torchvision.models import resnet50

SCORES = False
network = resnet50().cuda()


@torch.no_grad()
def scores(loader):
    network.eval()
    found = []
    if SCORES:
        for pictures in loader:
            found.append(network(pictures.cuda()).argmax(1).tolist())
    return found
