import torch
from torch import nn


def train(loader, classes):
    first, second, head = nn.GRU(8, 16).cuda(), nn.GRU(16, 16).cuda(), nn.Linear(16, classes).cuda()
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters(), *head.parameters()])
    low = torch.zeros(1, 4, 16).cuda()
    high = torch.zeros(1, 4, 16).cuda()
    for x, y in loader:
        out, low = first(x.cuda(), low)  # expect: GPU103
        out, high = second(out, high)  # expect: GPU103
        loss = nn.functional.cross_entropy(head(out[-1]), y.cuda())
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
