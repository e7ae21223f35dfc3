"""What is read one by one is on the host by then, is a few losses by their names, or is read once for all."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.Adam(net.parameters())
WORDS = ["the", "a", "of"]


def spelled(ids):
    return " ".join(WORDS[index] for index in ids if index != 0)


def padding(rows):
    return torch.stack([torch.BoolTensor([word == 0 for word in row]) for row in rows])


@torch.no_grad()
def validate(loader):
    net.eval()
    said = []
    for features, targets in loader:
        best = net(features.cuda()).argmax(-1).cpu()
        for row in best:
            said.append(spelled(row))
        for row in targets:
            said += [index for index, word in enumerate(row) if word == 1]
        print(padding(targets).shape)
    return said


def train(loader, model):
    for features, targets in loader:
        losses = model(features.cuda(), targets.cuda())
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
        print(sum(one.item() for one in losses.values()), {name: one.item() for name, one in losses.items()})
        rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        if any(row[0] > 1 for row in rows):
            print(torch.tensor([row.sum() for row in rows]))
