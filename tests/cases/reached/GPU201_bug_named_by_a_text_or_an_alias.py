"""The same evaluations, which a program runs: by a name in quotes, by another name, and through the package's own door."""
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
        scores = self.model(images)  # note: GPU201
        return (scores.argmax(1) == labels).sum().item()
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
        scores = model(images.cuda())  # expect: GPU201
        rows.append(scores.argmax(1).cpu())
    return rows
# file: segmentation/__init__.py
from .steps import predict, train
# file: run_segmentation.py
import segmentation


def main(model, loader, optimizer):
    segmentation.train(model, loader, optimizer)
    print(segmentation.predict(model, loader))


if __name__ == "__main__":
    main(*map(__import__, ()))
# file: run.py
from engine.trainer import Trainer


def main(model, loader, what="assess"):
    trainer = Trainer(model, "cuda")
    trainer.fit(loader)
    print(getattr(trainer, what)(loader))


if __name__ == "__main__":
    main(*map(__import__, ()))
