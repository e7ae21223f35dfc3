"""Of `scale * loss` the loss has the graph; the figures of it are numbers, but for one. The scale beside it is a number."""
import torch
from torch import nn


class Figures(dict):
    def __add__(self, other):
        return Figures({name: self.get(name, 0) + other[name] for name in other})


def losses(model: nn.Module, batch, settings, train):
    with torch.set_grad_enabled(train):
        simple, pruned, restored = model(batch["x"].cuda(), batch["y"].cuda())
        restored_scale = settings.restored_scale * max(1.0, 2.0 - batch["step"] / 100)
        loss = settings.simple_scale * simple + pruned
        loss += restored_scale * restored
    info = Figures()
    info["loss"] = loss.detach().cpu().item()
    info["simple_loss"] = simple.detach().cpu().item()
    info["pruned_loss"] = pruned.detach().cpu().item()
    info["restored_loss"] = restored  # expect: GPU101
    info["restored_loss_scale"] = restored_scale
    return loss, info


def train(model, loader, optimizer, settings):
    total = Figures()
    for batch in loader:
        loss, info = losses(model, batch, settings, True)
        total = total + info
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return total
