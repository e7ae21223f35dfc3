"""A program of one process, which still imports what it once ran several with, loads its weights before it extracts features."""

import sys

import torch
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet50


def restored(path):
    model = resnet50().cuda()
    weights = torch.load(path)
    model.load_state_dict(weights)
    # model = DistributedDataParallel(model)
    return model


@torch.no_grad()
def features(path, batches):
    model = restored(path).eval()
    return [model(images.cuda()).cpu() for images in batches]


if __name__ == "__main__":
    torch.save(features(sys.argv[1], torch.load(sys.argv[2], map_location="cpu")), "features.pt")
