"""One evaluator is in a group that runs it with grad off, but a script also makes it and runs it by itself."""
# file: evaluators/group.py
import torch


class Group:
    def __init__(self, members):
        self.members = members

    def evaluate(self, model, loader):
        figures = {}
        for member in self.members:
            with torch.no_grad():
                figures.update(member.evaluate(model, loader))
        return figures
# file: evaluators/reconstruction.py
class Reconstruction:
    def evaluate(self, model, loader):
        model.eval()
        error = 0.0
        for batch in loader:
            images = batch.cuda()
            restored = model(images)  # expect: GPU201
            error += (restored - images).abs().mean().item()
        return {"error": error / len(loader)}
# file: score.py
import torch

from evaluators.reconstruction import Reconstruction


def main(path, loader):
    model = torch.load(path)
    reconstruction = Reconstruction()
    print(reconstruction.evaluate(model, loader))
