import collections

import torch
from torch import nn


class DistillTrainer:
    def __init__(self, student: nn.Module, teacher: nn.Module, opt, temperature=2.0):
        self.student, self.teacher, self.opt, self.T = student.cuda(), teacher.cuda().eval(), opt, temperature
        self.logs = collections.defaultdict(list)

    def losses(self, x, y):
        with torch.no_grad():
            t = self.teacher(x)
        s = self.student(x)
        kd = nn.functional.kl_div(
            torch.log_softmax(s / self.T, -1), torch.softmax(t / self.T, -1), reduction="batchmean"
        )
        ce = nn.functional.cross_entropy(s, y)
        return {"kd": kd * self.T**2, "ce": ce}

    def step(self, x, y):
        parts = self.losses(x.cuda(), y.cuda())
        loss = parts["kd"] + 0.5 * parts["ce"]
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        for name, part in parts.items():
            self.logs[name].append(part)  # expect: GPU101
        return loss.item()
