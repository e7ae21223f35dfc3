"""The group that runs the evaluators leaves grad on, and so do all who run the group."""
# file: evaluators/group.py
import importlib


class Group:
    def __init__(self, options):
        self.members = [getattr(importlib.import_module(f"evaluators.{name}"), name.title())(options) for name in options]

    def evaluate(self, model, loader, step=None):
        figures = {}
        for member in self.members:
            figures.update(member.evaluate(model, loader, step))
        return figures
# file: evaluators/reconstruction.py
class Reconstruction:
    def __init__(self, options):
        self.options = options

    def evaluate(self, model, loader, step=None):
        model.eval()
        error = 0.0
        for batch in loader:
            images = batch.cuda()
            restored = model(images)  # expect: GPU201
            error += (restored - images).abs().mean().item()
        return {"error": error / len(loader)}
# file: train.py
import torch

from evaluators.group import Group


def main(model, options, loader, held_out):
    evaluators = Group(options)
    optimizer = torch.optim.Adam(model.parameters())
    for step, batch in enumerate(loader):
        loss = (model(batch.cuda()) - batch.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            print(evaluators.evaluate(model, held_out, step))
