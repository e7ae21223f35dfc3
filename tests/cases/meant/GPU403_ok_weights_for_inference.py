"""Small networks for inference: the weights are a local name of the constructor, which is gone before any forward."""

import torch
from torch import nn


class Detector:
    def __init__(self, path, device="cuda"):
        self.device = device
        self.net = nn.Conv2d(3, 4, 3).to(self.device)
        weights = torch.load(path, map_location=self.device)
        self.net.load_state_dict(weights["net"])
        self.net.eval()

    @torch.no_grad()
    def detect(self, image):
        return self.net(image.to(self.device)).cpu()


def landmarks(path, use_gpu=True):
    net = nn.Conv2d(3, 4, 3)
    if use_gpu:
        net = net.cuda()
        weights = torch.load(path, map_location="cuda")
    else:
        weights = torch.load(path, map_location="cpu")
    net.load_state_dict(weights["net"])
    return net.eval()


def demo(net, path):
    if 0 > 0:
        net.load_state_dict(torch.load(path)["net"])
    return net.cuda()
