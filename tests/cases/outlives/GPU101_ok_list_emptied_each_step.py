import torch
from torch import nn


class Pyramid:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device
        self.losses = []
        self.opt = torch.optim.Adam(net.parameters())

    def add(self, loss):
        self.losses.append(loss)

    def step(self, image):
        self.losses = []
        for scale in (1.0, 0.5, 0.25):
            small = nn.functional.interpolate(image, scale_factor=scale)
            self.add((self.net(small) - small).abs().mean())  # maybe: GPU303
        self.opt.zero_grad()
        sum(self.losses).backward()  # maybe: GPU303
        self.opt.step()


def train(net, loader):
    p = Pyramid(net, "cuda")
    for image in loader:
        p.step(image.cuda())
