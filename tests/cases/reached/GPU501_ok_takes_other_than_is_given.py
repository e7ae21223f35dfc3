"""What a function always gives does not fit what is taken of it: the script, or the function, gets no further."""
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


# file: too_few.py
import torch
from parts import three
from torch import nn
from torchvision.models import resnet50

net = resnet50().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

if __name__ == "__main__":
    batches, held_out = three("batches.pt")
    for images, labels in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images.cuda()), labels.cuda()).backward()
        optimizer.step()
        torch.cuda.empty_cache()  # low: GPU501

# file: too_many.py
import torch
from parts import two_or_three
from torch import nn


def train(net, optimizer):
    batches, held_out, more, names = two_or_three("batches.pt")
    for images, labels in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images.cuda()), labels.cuda()).backward()
        optimizer.step()
        torch.cuda.empty_cache()  # low: GPU501
