"""Some way of a function gives as many values as are taken of it, or what it gives is made elsewhere."""
# file: parts.py
import torch


def three(path):
    if path is None:
        return [], [], {}
    return torch.load(path), torch.load(path), {}


def two_or_three(path, whole=False):
    if whole:
        return torch.load(path), torch.load(path), {}
    return torch.load(path), torch.load(path)


def as_saved(path):
    return torch.load(path)


# file: as_many.py
import parts
import torch
from torch import nn
from torchvision.models import resnet50

net = resnet50().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

if __name__ == "__main__":
    batches, held_out = parts.two_or_three("batches.pt")
    names, *others = parts.three("batches.pt")
    first, second = parts.as_saved("batches.pt")
    for images, labels in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images.cuda()), labels.cuda()).backward()
        optimizer.step()
        torch.cuda.empty_cache()  # expect: GPU501
