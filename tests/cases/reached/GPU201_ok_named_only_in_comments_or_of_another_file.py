"""Evaluations that no program runs: others speak of them in comments and documents, or run what has the same name."""
# file: engine/trainer.py
import torch


class Trainer:
    def __init__(self, model, device):
        self.model, self.device = model.to(device), device
        self.optimizer = torch.optim.Adam(model.parameters())

    def fit(self, loader):
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(self.model(images.to(self.device)), labels.to(self.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def assess(self, loader):
        self.model.eval()
        right = 0
        for images, labels in loader:
            right += self.assess_batch(images.to(self.device), labels.to(self.device))
        return right

    def assess_batch(self, images, labels):
        scores = self.model(images)  # low: GPU201
        return (scores.argmax(1) == labels).sum().item()
# file: engine/losses.py
import torch


def penalty(weights):
    """Weights of the model to assess, and not those of the optimizer."""
    # trainer.assess(loader) has said that 1e-4 is best
    return 1e-4 * weights.pow(2).sum()
# file: segmentation/steps.py
import torch


def train(model, loader, optimizer):
    for images, masks in loader:
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), masks.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def predict(model, loader, batches=1):
    model.eval()
    rows = []
    for images, _ in loader:
        scores = model(images.cuda())  # low: GPU201
        rows.append(scores.argmax(1).cpu())
    return rows
# file: library/tools.py
import torch


@torch.no_grad()
def predict(loader, model):
    model.eval()
    return [model(images.cuda()).argmax(1).cpu() for images, _ in loader]
# file: run_segmentation.py
from library import tools
from segmentation import steps


def main(model, loader, optimizer):
    steps.train(model, loader, optimizer)
    print(tools.predict(loader, model))


if __name__ == "__main__":
    main(*map(__import__, ()))
# file: run.py
from engine.losses import penalty
from engine.trainer import Trainer


def main(model, loader):
    trainer = Trainer(model, "cuda")
    trainer.fit(loader)
    print(penalty(next(model.parameters())))


if __name__ == "__main__":
    main(*map(__import__, ()))
