"""A discriminator's step in trainers that derive from each other: who makes them gives all arguments by a dict, and validation switches grad off.

The loss of the generator's step is one of several metrics in a dict, whose object runs each of them.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(80, 256, 5, padding=2), nn.ReLU(), nn.Conv1d(256, 80, 5, padding=2))

    def forward(self, x):
        if self.training:
            return {"decoded": self.body(x)}
        return {"decoded": torch.cat([self.body(one) for one in x.split(64, dim=-1)], dim=-1)}


class Difference(nn.Module):
    def forward(self, made, wanted):
        return F.l1_loss(made, wanted)


class Hits(nn.Module):
    def forward(self, made, wanted):
        return (made.argmax(1) == wanted.argmax(1)).float().mean()


class Metrics:
    def __init__(self, several):
        self.several = several

    def __call__(self, made, wanted):
        return {name: one(made, wanted) for name, one in self.several.items()}


class Trainer(ABC):
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.metrics = Metrics({"hits": Hits(), "loss": Difference()})

    @abstractmethod
    def step(self, batch, phase):
        pass

    @torch.no_grad()
    def validate(self, batch):
        return self.step(batch, phase="dev")

    def run(self):
        for number, batch in enumerate(self.loader):
            self.step(batch.cuda(), phase="train")
            torch.cuda.empty_cache()  # expect: GPU501
            if number % 1000 == 0:
                self.validate(batch.cuda())


class Reconstructing(Trainer):
    def step(self, batch, phase):
        made = self.model["G"].forward(batch)["decoded"]
        loss = self.metrics(made, batch)["loss"]
        if phase == "train":
            self.optimizer["G"].zero_grad()
            loss.backward()
            self.optimizer["G"].step()


class Adversarial(Reconstructing):
    def step(self, batch, phase):
        made = self.model["G"].forward(batch)  # expect: GPU202
        loss = F.softplus(self.model["D"](made["decoded"].detach())).mean() + F.softplus(-self.model["D"](batch)).mean()
        if phase == "train":
            self.optimizer["D"].zero_grad()
            loss.backward()
            self.optimizer["D"].step()


def made_by(kind, **options):
    return Adversarial(**options) if kind == "gan" else Reconstructing(**options)


def main(kind, loader):
    model = {"G": Generator().cuda(), "D": nn.Conv1d(80, 1, 9).cuda()}
    optimizer = {name: torch.optim.Adam(one.parameters()) for name, one in model.items()}
    options = {"model": model, "optimizer": optimizer, "loader": loader}
    made_by(kind, **options).run()
