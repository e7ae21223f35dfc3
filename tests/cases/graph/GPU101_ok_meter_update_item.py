import torch
from torch import nn


class Meter:
    def __init__(self, name):
        self.name, self.total, self.n = name, 0, 0

    def update(self, val, n=1):
        self.total += val * n
        self.n += n

    def __str__(self):
        return "%s %.4f" % (self.name, self.total / self.n)


def accuracy(out, y, k=1):
    with torch.no_grad():
        return (out.topk(k, 1)[1] == y[:, None]).any(1).float().mean() * 100


def train(loader, model, opt, device):
    losses, top1, top5 = Meter("loss"), Meter("acc1"), Meter("acc5")
    crit = nn.CrossEntropyLoss().to(device)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = crit(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.update(loss.item(), x.size(0))
        top1.update(accuracy(out, y), x.size(0))
        top5.update(accuracy(out, y, 5).item(), x.size(0))
    print(losses, top1, top5)
