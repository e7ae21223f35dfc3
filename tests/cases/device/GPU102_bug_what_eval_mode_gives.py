"""A network gives something else in training than in eval mode, and an option that is called `model` is none."""
import argparse

import numpy as np
import torch
from torch import nn
from torchvision import models

parser = argparse.ArgumentParser()
parser.add_argument("--model")
args = parser.parse_args()


def loader_of(name):
    return torch.utils.data.DataLoader(torch.load(name, map_location="cpu"), batch_size=64)


class Reid(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.base = models.resnet50(weights=None)
        self.classifier = nn.Linear(1000, classes)

    def forward(self, x):
        feature = self.base(x)
        if self.training:
            return self.classifier(feature), feature
        return feature


def gallery(classes):
    loader = loader_of(args.model.replace("/", "-"))
    network = Reid(classes).cuda().eval()
    features = []
    with torch.no_grad():
        for images, _ in loader:
            features.append(network(images.cuda()))  # note: GPU102
    return torch.cat(features).cpu().numpy()


def both(classes):
    loader = loader_of(args.model)
    network = Reid(classes).cuda()
    network.eval()
    network.train()
    for images, targets in loader:
        scores, features = network(images.cuda())
        nn.functional.cross_entropy(scores, targets.cuda()).backward()
        np.save("features.npy", features.detach().cpu().numpy())
