"""A wrapper runs a teacher, which is in eval mode, and its student: what the teacher gives is cut before the loss."""

import torch
from torch import nn


class Distiller(nn.Module):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher, self.student = teacher, student

    def forward(self, x):
        wanted = self.teacher(x)  # expect: GPU202
        got = self.student(x)
        return got, (got - wanted.detach()).pow(2).mean()


def train(loader):
    teacher = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 10, 3)).cuda()
    student = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 10, 3)).cuda()
    both = Distiller(teacher, student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    both.train()
    both.teacher.eval()
    for x, y in loader:
        got, distance = both(x.cuda())
        loss = nn.functional.cross_entropy(got, y.cuda()) + distance  # maybe: GPU401
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
