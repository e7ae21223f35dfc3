"""The same for a backbone that everybody knows: half a gigabyte of weights, twice through the whole test."""

import argparse

import torch
from torchvision import models

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="vgg16")
parser.add_argument("--weights", required=True)
args = parser.parse_args()
net = models.__dict__[args.arch](num_classes=200).cuda()


def test(loader):
    weights = torch.load(args.weights)  # expect: GPU403
    net.load_state_dict(weights["net"])
    net.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (net(images.cuda()).argmax(1).cpu() == labels).sum().item()
    torch.save(net.state_dict(), "tested.pt")
    return right
