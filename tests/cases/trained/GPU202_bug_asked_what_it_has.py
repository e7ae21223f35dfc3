"""A teacher that is asked what it has, and what it is called: who asks does not freeze it."""

import torch
import torchvision
from torch import nn
from torch.nn import functional as F


class Lesson:
    def __init__(self, student):
        self.student = student.cuda()
        self.teacher = torchvision.models.resnet50().cuda()
        if not hasattr(self.teacher, "fc") or not isinstance(self.teacher, nn.Module):
            raise ValueError(id(self.teacher))
        self.optimizer = torch.optim.Adam(self.student.parameters())

    def step(self, x):
        wanted = self.teacher(x).argmax(1)  # expect: GPU202
        loss = F.cross_entropy(self.student(x), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


lesson = Lesson(torchvision.models.resnet18())
for x in load("train"):
    lesson.step(x.cuda())
