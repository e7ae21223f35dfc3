"""A step's loss goes into two lists of its epoch, as a number into each."""

import torch
from torch import nn
from torchvision.models import resnet50


def epoch(net, optimizer, loader):
    found = {"loss": []}
    losses = []
    for images, labels in loader:
        loss = nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found["loss"].append(loss.item())
        losses.append(loss.item())
    return sum(losses), len(found["loss"])


if __name__ == "__main__":
    network = resnet50().cuda()
    print(epoch(network, torch.optim.SGD(network.parameters(), lr=0.1), torch.load("batches.pt")))
