# Whether the graph of a returned loss is kept for a backward through the meta loss is the caller's to say, by a flag.
import torch
import torch.nn as nn
import torch.nn.functional as F


class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
        self.meta = torch.optim.Adam(self.net.parameters())
        self.seen = []

    def inner(self, x, y, second_order):
        loss = F.cross_entropy(self.net(x.cuda()), y.cuda())
        loss.backward(create_graph=second_order)
        return loss  # low: GPU101

    def plain(self, x, y):
        loss = F.cross_entropy(self.net(x.cuda()), y.cuda())
        self.meta.zero_grad()
        loss.backward(create_graph=False)
        self.meta.step()
        return loss


def adapt(learner, tasks, second_order=True):
    total = 0
    for x, y in tasks:
        total += learner.inner(x, y, second_order)
    return total / len(tasks)


def train(tasks):
    learner = Learner()
    losses = []
    for x, y in tasks:
        losses.append(learner.plain(x, y))  # expect: GPU101
    print(len(losses))
    adapt(learner, tasks).backward()
