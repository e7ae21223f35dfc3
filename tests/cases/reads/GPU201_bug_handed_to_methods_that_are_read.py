"""In eval mode and round after round: what the network gives goes to a method of which the project has one, and that only counts."""
# file: tasks.py
class Task:
    def __init__(self):
        self.right = self.all = 0

    def count_up(self, found, labels):
        self.right += (found["scores"].argmax(-1) == labels).sum().item()
        self.all += len(labels)
# file: trainer.py
import torch


class Trainer:
    def __init__(self, model: torch.nn.Module, tasks):
        self.model, self.tasks = model.cuda(), tasks

    def _forward(self, batch):
        return {"scores": self.model(batch["x"].cuda())}  # maybe: GPU201

    def validate(self, loader, task):
        self.model.eval()
        for batch in loader:
            found = self._forward(batch)  # expect: GPU201
            task.count_up(found, batch["y"].cuda())
        return task.right / task.all

    def measure(self, loader, surgeon):
        self.model.eval()
        for batch in loader:
            found = self._forward(batch)  # maybe: GPU201
            surgeon.operate(found, batch["y"].cuda())
