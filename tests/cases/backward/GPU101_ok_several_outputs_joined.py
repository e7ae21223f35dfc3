"""A network gives several tensors; what grows has no graph, or is not known to have one."""

import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4096, 2048)

    def forward(self, x):
        scores = self.layer(x)
        return scores.argmax(-1), scores


class Extractor:
    def __init__(self, network: nn.Module):
        self.network = network.cuda()
        self.scorer = Scorer().cuda()

    def positions(self, loader):
        self.network.eval()
        positions = 0
        for number, (images, _) in enumerate(loader):
            scores, best = self.network(images.cuda())  # expect: GPU201
            positions = best if number == 0 else torch.cat((positions, best), 0)
        return positions

    def cut(self, loader):
        self.network.eval()
        features = 0
        for number, (images, _) in enumerate(loader):
            local, whole = self.network(images.cuda())  # expect: GPU201
            local = local.detach().cpu()
            if number == 0:
                features = local
            else:
                features = torch.cat((features, local), 0)
        return features

    def classes(self, loader):
        self.scorer.eval()
        found = torch.zeros(0).cuda()
        for images, _ in loader:
            best, scores = self.scorer(images.cuda())  # expect: GPU201
            found = torch.cat((found, best), 0)  # maybe: GPU102
        return found.cpu()
