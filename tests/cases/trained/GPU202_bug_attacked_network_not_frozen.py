"""A backward goes through a network to the one thing that is optimised, a patch, a latent, a picture: nobody steps the network,
and nobody has frozen it."""

import timm
import torch
from torch import nn
from torchvision.models import resnet50, vgg19


def paint(patch, batch):
    return torch.where(patch.sum(0) > 0.1, patch, batch)


def attack(loader, device):
    net = resnet50(weights="DEFAULT").to(device).eval()
    patch = torch.rand(3, 224, 224, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([patch], lr=0.01)
    for x, y in loader:
        loss = -nn.functional.cross_entropy(net(paint(patch, x.to(device))), y.to(device))  # expect: GPU202
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Painter:
    def __init__(self, device):
        self.features = vgg19(pretrained=True).features.to(device).eval()
        self.canvas = torch.rand(1, 3, 512, 512, device=device).requires_grad_()
        self.optimizer = torch.optim.Adam([{"params": self.canvas}], lr=0.05)

    def step(self, wanted):
        self.optimizer.zero_grad()
        seen = self.features(self.canvas)  # expect: GPU202
        loss = nn.functional.mse_loss(seen, wanted)
        loss.backward()
        self.optimizer.step()


def load(name):
    net = timm.create_model(name, pretrained=True)
    net.eval()
    return net.cuda()


def dream(rounds):
    net = load("resnet50")
    image = torch.randn(1, 3, 224, 224).cuda()
    image.requires_grad = True
    for _ in range(rounds):
        score = net(image)[:, 3].mean()  # expect: GPU202
        score.backward()
        with torch.no_grad():
            image += image.grad / image.grad.norm()
            image.grad = None


def invert(net, wanted, rounds):
    latent = torch.zeros(1, 512, device="cuda", requires_grad=True)
    optimizer = torch.optim.LBFGS([latent])

    def closure():
        optimizer.zero_grad()
        loss = (net.eval()(latent) - wanted).pow(2).mean()  # low: GPU202
        loss.backward()
        return loss

    for _ in range(rounds):
        optimizer.step(closure)


def attack_unseen(net, loader):
    net.eval()
    noise = torch.zeros(1, 3, 224, 224, device="cuda", requires_grad=True)
    params = [noise]
    optimizer = torch.optim.SGD(params, lr=0.1)
    for x, y in loader:
        out = net(x.cuda() + noise)  # low: GPU202
        loss = nn.functional.cross_entropy(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
