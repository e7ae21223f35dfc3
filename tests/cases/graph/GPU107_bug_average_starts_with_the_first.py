"""A running mean whose first value is the first batch's, in one expression: both have to be cut."""

import torch
from torch import nn


class Centred(nn.Module):
    def __init__(self, momentum=0.9):
        super().__init__()
        self.momentum, self.centre = momentum, None

    def forward(self, teacher_scores):
        mean = teacher_scores.mean(0, keepdim=True)
        self.centre = mean if self.centre is None else self.centre * self.momentum + mean * (1 - self.momentum)  # expect: GPU107
        return teacher_scores - mean


def train(student: nn.Module, loader):
    student.cuda()
    centred = Centred()
    opt = torch.optim.AdamW(student.parameters())
    for one, two in loader:
        a, b = centred(student(one.cuda())), student(two.cuda())
        loss = -(a.softmax(-1) * b.log_softmax(-1)).sum(-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save(centred.centre.detach().cpu(), "centre.pt")
