"""A package that others install: they may give what no call in sight gives."""
# file: engine/trainer.py
import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, device, judge=None):
        self.model, self.device = model.to(device), device
        self.judge = judge

    def fit(self, loader):
        optimizer = torch.optim.Adam(self.model.parameters())
        for images, labels in loader:
            loss = nn.functional.cross_entropy(self.model(images.to(self.device)), labels.to(self.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def assess(self, loader):
        self.model.eval()
        right = 0
        for images, labels in loader:
            if self.judge is not None:
                right += (self.model(images.to(self.device)).argmax(1) == labels.to(self.device)).sum().item()  # low: GPU201
        return right
# file: setup.py
from setuptools import find_packages, setup

setup(name="engine", packages=find_packages())
# file: run.py
from engine.trainer import Trainer


def main(model, loader):
    trainer = Trainer(model, "cuda")
    trainer.fit(loader)
    print(trainer.assess(loader))


if __name__ == "__main__":
    main(*map(__import__, ()))
