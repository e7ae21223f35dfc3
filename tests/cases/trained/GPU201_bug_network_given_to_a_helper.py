"""The same of a network that nobody has frozen: the first is, and is not the one that runs."""

import torch
from torch import nn


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 512, 3), nn.Conv2d(512, 3, 3))

    def forward(self, x):
        return self.body(x)


def flipped(model, image):
    return (model(image) + model(image.flip(-1)).flip(-1)) / 2  # expect: GPU201


def main(paths, read, device):
    teacher = Restorer().to(device)
    for _, weight in teacher.named_parameters():
        weight.requires_grad = False
    model = Restorer()
    model.load_state_dict(torch.load("restorer.pt", map_location="cpu"))
    model.eval()
    model = model.to(device)
    for path in paths:
        restored = flipped(model, read(path).to(device))
        print(path, restored.mean().item())


main(["a.png", "b.png"], torch.load, "cuda")
