"""All inputs of one forward say `volatile=True`, on a GPU and without one: one mistake, told once."""

import torch
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
