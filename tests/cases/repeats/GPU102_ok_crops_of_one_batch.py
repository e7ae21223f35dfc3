import torch
from torch import nn


class Views:
    def __init__(self, student: nn.Module, teacher: nn.Module, opt):
        self.student, self.teacher, self.opt = student.cuda(), teacher.cuda(), opt

    def step(self, crops):
        own = [self.student(crop) for crop in crops]
        with torch.no_grad():
            theirs = [self.teacher(crop) for crop in crops]
        loss = sum((a - b).pow(2).mean() for a, b in zip(own, theirs))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()
