"""Weights that are copied tensor by tensor from the host, or let go of as soon as they are."""

import torch
from torch.nn import functional as F
from torchvision.models import resnet50


def train(net, optimizer, loader):
    for images, labels in loader:
        loss = F.cross_entropy(net(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(path, loader):
    net = resnet50().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = torch.load(path, map_location="cpu")
    own = net.state_dict()
    for name, weight in kept["net"].items():
        own[name].copy_(weight)
    optimizer.load_state_dict(kept["optimizer"])
    train(net, optimizer, loader)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
