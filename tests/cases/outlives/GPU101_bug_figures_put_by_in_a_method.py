"""The figures go to a method that keeps them until they are logged; one entry is brought to the host with its graph."""

from collections import defaultdict

import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, opt):
        self.net, self.opt = net.cuda(), opt
        self.stored = defaultdict(list)

    def losses(self, batch):
        figures = {}
        scores = self.net(batch["x"].cuda())
        likelihood = F.cross_entropy(scores, batch["y"].cuda())
        margin = (scores[:, 0] - scores[:, 1]).relu().mean()
        figures["margin"] = margin.detach().cpu()
        figures["scores"] = scores.detach().mean().cpu()
        figures["likelihood"] = likelihood.cpu().mean()  # expect: GPU101@a
        return likelihood + margin, figures

    def step(self, batch):
        loss, figures = self.losses(batch)
        self.put(figures)  # expect: GPU101@a
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def put(self, figures):
        for key, value in figures.items():
            self.stored[key].append(value)

    def log(self):
        print({key: torch.stack(values).mean() for key, values in self.stored.items()})
        self.stored.clear()
