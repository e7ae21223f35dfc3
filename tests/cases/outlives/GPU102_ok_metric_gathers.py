"""Metrics that bring each batch to the host, compute on the device, or whose state a library gathers."""

import torch
from torchmetrics import Metric
from torchvision.models import inception_v3


class ToHost:
    def __init__(self):
        self.network = inception_v3().eval().cuda()
        self.features = []

    @torch.no_grad()
    def update(self, images):
        self.features.append(self.network(images.cuda()).cpu())

    def compute(self):
        return torch.cat(self.features).numpy().mean()


class Neighbours:
    def __init__(self, bank):
        self.network, self.bank = inception_v3().eval().cuda(), bank.cuda()
        self.features = []

    @torch.no_grad()
    def update(self, images):
        self.features.append(self.network(images.cuda()))

    def compute(self):
        return torch.cdist(torch.cat(self.features), self.bank).amin(1).mean().item()


class Gathered(Metric):
    def __init__(self):
        super().__init__()
        self.network = inception_v3().eval()
        self.add_state("features", default=[], dist_reduce_fx="cat")

    @torch.no_grad()
    def update(self, images):
        self.features.append(self.network(images))

    def compute(self):
        return torch.cat(self.features).cpu().numpy().mean()


class Window:
    def __init__(self):
        self.network = inception_v3().eval().cuda()
        self.features = []

    @torch.no_grad()
    def update(self, images):
        self.features.append(self.network(images.cuda()))
        if len(self.features) > 8:
            self.features.pop(0)

    def compute(self):
        return torch.cat(self.features).cpu().numpy().mean()
