"""The same options, which one call of the program gives, or a command line may give."""
# file: engine.py
import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, device, verbose=False):
        self.model, self.device = model.to(device), device
        self.optimizer = torch.optim.Adam(model.parameters())
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
            right += (self.model(images.to(self.device)).argmax(1) == labels.to(self.device)).sum().item()  # expect: GPU201
        return right

    def report(self, loader):
        if not self.verbose:
            return
        self.model.eval()
        for images, _ in loader:
            print(self.model(images.to(self.device)).mean().item())  # expect: GPU201
# file: run.py
import argparse

from engine import Trainer


def main(model, loader, others):
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true")
    trainer = Trainer(model, "cuda", verbose=parser.parse_args().verbose)
    trainer.fit(loader, epochs=3)
    trainer.fit(loader, others)


if __name__ == "__main__":
    main(*map(__import__, ()))
