import torch
from torch import nn


def predict(model: nn.Module, x):
    model.eval()
    with torch.no_grad:  # expect: GPU204
        return model(x.cuda()).cpu()  # maybe: GPU201
