"""Features of a few views of one picture are multiplied where they are: no loader fills the list."""

import torch
from torchvision.models import resnet50


@torch.no_grad()
def similarity(picture):
    net = resnet50().cuda().eval()
    features = []
    for view in picture.chunk(5):
        features.append(net(view.cuda()))
    features = torch.cat(features)
    return features @ features.t()
