"""A module trains within its own forward; the network that encodes a picture is another one: the module has no such method."""
# file: perceiving.py
import torch


def load(name):
    model = torch.jit.load(name, map_location="cpu").eval()
    return model.cuda()
# file: imagine.py
import torch
from perceiving import load
from torch import nn

perceptor = load("perceptor.pt")


class Imagining(nn.Module):
    def __init__(self, picture, steps):
        super().__init__()
        self.picture = nn.Parameter(picture.cuda())
        self.optimizer = torch.optim.Adam([self.picture])
        self.steps = steps

    def encoded(self, pictures):
        found = []
        for picture in pictures:
            found.append(perceptor.encode_image(picture.cuda()).detach())  # expect: GPU201  # maybe: GPU102
        return found

    def forward(self, wanted):
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            distance = (perceptor.encode_image(self.picture) - wanted).pow(2).mean()  # low: GPU202
            distance.backward()
            self.optimizer.step()
        return self.picture
