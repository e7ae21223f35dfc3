"""An evaluation that needs grad: four calls below, an object that is called descends along a gradient. What lists parameters runs nothing."""

import torch
import torch.nn as nn


class Embedding:
    def __call__(self, distances, places):
        places = places.clone().requires_grad_(True)
        for _ in range(20):
            loss = ((places[1:] - places[:-1]).norm(dim=1) - distances).pow(2).sum()
            places = places - 0.1 * torch.autograd.grad(loss, places)[0]
        return places


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 1))
        self.head = nn.Linear(512, 4)

    def place(self, x, places, embedding=Embedding()):
        return embedding(self.body(x).squeeze(1)[1:], places)

    def error(self, x, places):
        return (self.place(x, places) - places).pow(2).sum(1).mean()

    def groups(self):
        return [one for one in self.body.parameters() if one.requires_grad], list(self.head.parameters())


def validate(model, loader):
    model.eval()
    total = 0.0
    for x, places in loader:
        total += model.error(x.cuda(), places.cuda()).item()
    return total / len(loader)


def main(loader):
    model = Conformer().cuda()
    main_weights, others = model.groups()
    slow, fast = torch.optim.Adam(main_weights, lr=1e-4), torch.optim.Adam(others, lr=1e-2)
    print(validate(model, loader), slow, fast)
