"""A class that trains nothing puts its network into eval mode where it is loaded, or made: so it is wherever it runs."""

import torch
from torch import nn


class Detector:
    def __init__(self, network: nn.Module):
        self.network = network.cuda()

    def load(self, path):
        self.network.load_state_dict(torch.load(path, map_location="cpu"))
        self.network.eval()

    def boxes(self, pictures):
        found = []
        for picture in pictures:
            found.append(self.network(picture.cuda()).detach().cpu())  # expect: GPU201
        return found


class Student:
    def __init__(self, network: nn.Module, path):
        self.network = network.cuda()
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.load_teacher(path)

    def load_teacher(self, path):
        self.teacher = torch.load(path, weights_only=False).cuda()
        self.teacher.eval()

    def step(self, images, labels):
        loss = nn.functional.cross_entropy(self.network(images.cuda()), labels.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def agreement(self, loader):
        same = 0
        for images, labels in loader:
            same += (self.teacher(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # expect: GPU201
        return same
