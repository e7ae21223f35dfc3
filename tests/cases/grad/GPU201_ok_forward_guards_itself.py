import torch
from torch import nn


def quiet(new=True):
    def decorate(function):
        return (torch.inference_mode if new else torch.no_grad)()(function)

    return decorate


class Shaped(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model.eval()

    @quiet()
    def forward(self, image):
        return self.model(image)


def close(model, image):
    shaped = Shaped(model)
    single = shaped(image)[0]
    half = shaped(image.half())[0]
    return single.shape == half.shape and (single - half).abs().max().item() < 0.1
