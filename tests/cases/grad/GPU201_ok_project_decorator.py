import functools

import torch


def evaluation(fn):
    """Runs a method with the model in eval mode and without gradients."""

    @functools.wraps(fn)
    def wrapper(self, *args, **kwargs):
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                return fn(self, *args, **kwargs)
        finally:
            self.model.train(was_training)

    return wrapper


class Trainer:
    def __init__(self, model, val_loader, device):
        self.model, self.val_loader, self.device = model.to(device), val_loader, device

    @evaluation
    def validate(self):
        hits = n = 0
        for x, y in self.val_loader:
            out = self.model(x.to(self.device))
            hits += (out.argmax(1).cpu() == y).sum().item()
            n += len(y)
        return hits / n
