import torch
from torch import nn

acts = []


def hook(module, inputs, output):
    acts.append(output)


def train(student, teacher, loader, opt):
    student.mid.register_forward_hook(hook)
    for x, y in loader:
        acts.clear()
        with torch.no_grad():
            t = teacher(x.cuda())
        out = student(x.cuda())
        loss = nn.functional.cross_entropy(out, y.cuda()) + (acts[0] - t).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
