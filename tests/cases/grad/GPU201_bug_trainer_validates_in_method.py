"""A trainer's class whose methods train and validate the same network; results go to functions of other modules."""

import torch
from metrics import intersection


class Trainer:
    def __init__(self, make_network, loaders, device):
        self.network = make_network().to(device)
        self.loaders = loaders
        self.device = device
        self.optimizer = torch.optim.Adam(self.network.parameters())

    def epoch(self):
        self.network.train()
        for images, masks in self.loaders["train"]:
            loss = torch.nn.functional.cross_entropy(self.network(images.to(self.device)), masks.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def validate(self):
        self.network.eval()
        hits = 0.0
        for images, masks in self.loaders["val"]:
            scores = self.network(images.to(self.device))  # expect: GPU201
            hits += intersection(scores, masks.to(self.device))
        self.network.train()
        return hits
