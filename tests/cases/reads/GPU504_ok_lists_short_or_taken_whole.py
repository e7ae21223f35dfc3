"""A list that is filled for each of a few heads is short, what goes to the host as a whole takes the time of that, and each round of a
generator is a step of its own."""

import torch
from torch import nn

network = nn.LSTM(64, 64).cuda().eval()
heads = nn.ModuleList([nn.Linear(64, 10), nn.Linear(64, 20)]).cuda()


def outputs(loader):
    for x in loader:
        yield network(x.cuda())[0]


@torch.no_grad()
def answers(loader):
    rows = []
    for x in loader:
        found = []
        for part in x.cuda().split(8):
            found.append(network(part)[0].mean(0))
        rows.append([one.cpu() for one in found])
        few = [head(x.cuda()).argmax() for head in heads]
        print([one.item() for one in few])
    print([one.sum().item() for one in outputs(loader)])
    return rows
