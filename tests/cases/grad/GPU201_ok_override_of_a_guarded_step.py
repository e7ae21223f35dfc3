import torch
from torch import nn


class Runner:
    def __init__(self, model: nn.Module, loader):
        self.model, self.loader = model, loader

    def inference_step(self, batch):
        raise NotImplementedError

    def inference(self):
        found = []
        with torch.no_grad():
            for batch in self.loader:
                found.append(self.inference_step(batch))
        return found


class ClassificationRunner(Runner):
    def inference_step(self, batch):
        label = batch.pop("label")
        logits = self.model(batch)
        return logits.argmax(-1).cpu().tolist(), label.cpu().tolist()
