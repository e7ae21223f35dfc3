"""Features of many files with grad enabled: each keeps its graph."""

import torch
from PIL import Image
from torchvision.models import resnet18


def features(paths, transform):
    net = resnet18().cuda()
    kept = []
    for path in paths:
        image = transform(Image.open(path).convert("RGB")).unsqueeze(0).cuda()
        kept.append(net(image))  # expect: GPU101  # maybe: GPU201
    print(len(kept))


def scores(net: torch.nn.Module, dataset):
    total = 0
    for i in range(len(dataset)):
        image, label = dataset[i]
        total += torch.nn.functional.cross_entropy(net(image[None].cuda()), label.cuda())  # expect: GPU101  # note: GPU201
    print(float(total) / len(dataset))
