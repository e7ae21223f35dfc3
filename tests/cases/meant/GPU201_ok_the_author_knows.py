import functools

import torch
from torch import nn


def placed(function):
    @functools.wraps(function)
    def run(self, *args):
        self.model.to(self.device)
        return function(self, *args)

    return run


class Detector:
    def __init__(self, model: nn.Module, device="cuda"):
        self.model, self.device = model.eval(), device

    @torch.inference_mode()
    @placed
    def predict(self, images):
        found = []
        for image in images:
            found.append(self.model(image.to(self.device)).argmax(-1).item())
        return found


class Samples:
    def __init__(self, model: nn.Module, differentiable=False):
        self.model, self.differentiable = model.eval(), differentiable

    def draw(self, x, weights):
        self.model.eval()
        found = []
        for weight in weights:
            nn.utils.vector_to_parameters(weight, self.model.parameters())
            out = self.model(x)
            found.append(out.detach() if not self.differentiable else out)
        return torch.stack(found)


def evaluate(model: nn.Module, loader):
    model.eval()
    total = 0.0
    for batch in loader:
        try:
            with torch.no_grad():
                out = model(batch.cuda())
        except RuntimeError:
            out = model(batch.cuda())
        total += out.loss.item()
    return total
