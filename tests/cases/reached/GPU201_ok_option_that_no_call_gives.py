"""Evaluations that run only for an option, or an optional argument, that no call of the program ever gives."""
# file: engine.py
import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, device, judge=None, verbose=False):
        self.model, self.device = model.to(device), device
        self.optimizer = torch.optim.Adam(model.parameters())
        self.judge = judge
        self.verbose = verbose

    def fit(self, loader, held_out=None, epochs=10):
        for epoch in range(epochs):
            for images, labels in loader:
                loss = nn.functional.cross_entropy(self.model(images.to(self.device)), labels.to(self.device))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if held_out is not None:
                print(epoch, self.assess(held_out.loader))
            self.report(loader)

    def assess(self, loader):
        self.model.eval()
        right = 0
        for images, labels in loader:
            right += (self.model(images.to(self.device)).argmax(1) == labels.to(self.device)).sum().item()
        return right

    def report(self, loader):
        if not self.verbose:
            return
        self.model.eval()
        for images, _ in loader:
            print(self.model(images.to(self.device)).mean().item())

    def spread(self, loader, which="mean"):
        self.model.eval()
        figures = []
        for images, _ in loader:
            if which == "all" and self.judge is not None:
                figures.append(self.model(images.to(self.device)).detach().cpu())
        return figures
# file: run.py
from engine import Trainer


def main(model, loader, others):
    trainer = Trainer(model, "cuda")
    trainer.fit(loader, epochs=3)
    trainer.fit(others)
    print(trainer.spread(loader))


if __name__ == "__main__":
    main(*map(__import__, ()))
