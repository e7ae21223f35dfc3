"""All inputs of one forward say `volatile=True`, on a GPU and without one: one mistake, told once. Another loop is another
one."""

import torch
from torch import nn
from torch.autograd import Variable
from torchvision import models


class Scorer:
    def __init__(self, use_cuda):
        self.network = models.resnet101(pretrained=True)
        self.use_cuda = use_cuda
        if use_cuda:
            self.network.cuda()
        self.network.eval()

    def similar(self, loader):
        rows = []
        for left, right in loader:
            if self.use_cuda:
                left = Variable(left.cuda(), volatile=True)  # expect: GPU204
                right = Variable(right.cuda(), volatile=True)
            else:
                left, right = Variable(left, volatile=True), Variable(right, volatile=True)  # maybe: GPU204
            rows.append((self.network(left) * self.network(right)).sum(1).data.cpu())  # maybe: GPU201
        return torch.cat(rows)

    def both(self, loader, others):
        total = 0.0
        for images in loader:
            images = Variable(images.cuda(), volatile=True)  # expect: GPU204
            total += self.network(images).data.mean().item()  # maybe: GPU201
        for images in others:
            images = Variable(images.cuda(), volatile=True)  # expect: GPU204
            total -= self.network(images).data.mean().item()  # maybe: GPU201
        return total
