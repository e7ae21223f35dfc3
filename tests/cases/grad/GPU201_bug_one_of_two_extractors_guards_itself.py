"""One of several extractors, chosen by a word: the forward of one of them switches grad off by itself, that of the other does not."""

# file: extractors.py
import torch
from torch import nn
from torchvision import models


class Extractor(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.found = []
        self.load(path)

    def load(self, path):
        pass


class Deep(Extractor):
    def load(self, path):
        self.model = models.resnet50().cuda()
        self.model.load_state_dict(torch.load(path, map_location="cpu"))
        self.model.eval()

    @torch.no_grad()
    def forward(self, x):
        return self.model(x)


class Wide(Extractor):
    def load(self, path):
        self.model = models.wide_resnet50_2().cuda()
        self.model.load_state_dict(torch.load(path, map_location="cpu"))
        self.model.eval()

    def forward(self, x):
        return self.model(x).relu()


def make(kind, path):
    if kind == "deep":
        extractor = Deep(path)
    elif kind == "wide":
        extractor = Wide(path)
    else:
        raise ValueError(kind)
    return extractor


# file: evaluate.py
import torch
from extractors import make


def evaluate(kind, path, heads, dataset):
    extractor = make(kind, path)
    predictions = []
    for image, label in dataset:
        features = extractor(image[None].cuda())  # note: GPU201
        predictions.append(features.flatten(1).argmax(-1).cpu())
        print(features.mean().item())
    return torch.cat(predictions)
