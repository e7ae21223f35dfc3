"""A step's scores go into two lists of its epoch, of which one is behind a key: cut for one of them alone, they keep their graphs."""

import torch
from torch import nn
from torchvision.models import resnet50


def step(net, optimizer, images, labels):
    scores = net(images)
    loss = nn.functional.cross_entropy(scores, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss, scores


def epoch(net, optimizer, loader):
    found = {}
    scores_of_all = []
    for images, labels in loader:
        loss, scores = step(net, optimizer, images.cuda(), labels.cuda())
        if "scores" in found:
            found["scores"].append(scores)  # maybe: GPU101
        else:
            found["scores"] = [scores]  # maybe: GPU101
        scores_of_all.append(scores)  # expect: GPU101
    return [one.argmax(1).tolist() for one in scores_of_all], len(found["scores"])


if __name__ == "__main__":
    network = resnet50().cuda()
    print(epoch(network, torch.optim.SGD(network.parameters(), lr=0.1), torch.load("batches.pt")))
