"""Each way of the function takes what is not there, or leaves: nothing gets to the loop."""

import torch
from torch import nn
from torchvision.models import resnet50


def pair(path):
    return torch.load(path), torch.load(path)


def train(net, optimizer, path):
    if path is None:
        return
    else:
        train_set, held_out, names = pair(path)
    for images, labels in train_set:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images.cuda()), labels.cuda()).backward()
        optimizer.step()
        torch.cuda.empty_cache()  # low: GPU501


if __name__ == "__main__":
    network = resnet50().cuda()
    train(network, torch.optim.SGD(network.parameters(), lr=0.1), "batches.pt")
