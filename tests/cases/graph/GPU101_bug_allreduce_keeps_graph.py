"""Horovod's allreduce is differentiable: the metric adds up averages with their graphs."""

import horovod.torch as hvd
import torch
import torch.nn.functional as F
from torchvision import models


class Metric:
    def __init__(self, name):
        self.name = name
        self.sum = torch.tensor(0.0)
        self.count = 0

    def update(self, value):
        self.sum += hvd.allreduce(value.cpu(), name=self.name)
        self.count += 1


def train(loader):
    model = models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train_loss = Metric("loss")
    right = Metric("right")
    for images, labels in loader:
        optimizer.zero_grad()
        scores = model(images.cuda())
        loss = F.cross_entropy(scores, labels.cuda())
        train_loss.update(loss)  # expect: GPU101
        right.update((scores.argmax(1) == labels.cuda()).float().mean())
        loss.backward()
        optimizer.step()
    return train_loss.sum / train_loss.count
