import torch
from torch import nn


class Boundary:
    """Terms of one loss, some of them with derivatives of the network: the trainer goes backward through their sum."""

    def __init__(self, net: nn.Module, conditions):
        self.net = net.cuda()
        self.conditions = conditions

    def loss(self, inside):
        edges = torch.zeros((), device="cuda")
        for kind, points, wanted in self.conditions:
            points = points.cuda().requires_grad_()
            found = self.net(points)
            if kind == "value":
                edges += torch.mean(torch.square(found - wanted))
            else:
                slope = torch.autograd.grad(found.sum(), points, create_graph=True)[0]
                edges += torch.mean(torch.square(slope - wanted))
        return edges + self.net(inside.cuda()).pow(2).mean()
