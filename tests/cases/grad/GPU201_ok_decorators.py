import torch
from torch import nn, inference_mode
from torch import no_grad as ng


@torch.no_grad()
def a(model: nn.Module, loader):
    model.eval()
    return [model(x.cuda()).argmax(1).cpu() for x in loader]


@torch.no_grad
def b(model: nn.Module, loader):
    model.eval()
    hits = 0
    for x, y in loader:
        hits += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return hits


@inference_mode()
def c(model: nn.Module, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += nn.functional.mse_loss(model(x.cuda()), y.cuda())
    return total.item()


@ng()
def d(model, x):
    model.eval()
    return model(x)
