"""What networks out of sight give several of is a list, which a function goes through: each is a tensor of its own."""

import torch
from judges import build


def judged(real, fake):
    total, figures = 0, []
    for one, other in zip(real, fake):
        loss = ((1 - one) ** 2).mean() + (other**2).mean()
        figures.append(loss.item())
        total += loss
    return total, figures


def train(loader, generator, path):
    judge = build(path).cuda()
    optimizer = torch.optim.Adam(judge.parameters())
    for x, y in loader:
        real, fake, *_ = judge(x.cuda(), y.cuda())
        loss, figures = judged(real, fake)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(figures)
