"""The step takes its model and its optimizer out of what is kept: it makes none."""
import torch


class Worker:
    def __init__(self, model, optimizer, criterion):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion

    def step(self, batch, target):
        model = unwrap(self.model)
        optimizer = self.current_optimizer()
        optimizer.zero_grad()
        loss = self.criterion(model(batch), target)
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # expect: GPU501
        return loss.item()

    def current_optimizer(self):
        return self.optimizer


def unwrap(model):
    return getattr(model, "module", model)
