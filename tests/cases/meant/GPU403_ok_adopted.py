"""What is loaded becomes a part of an object: from the CPU it would stay there."""

import torch
from torch import nn


class Topics:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.prior = torch.zeros(8).cuda()

    def save(self, path):
        torch.save({"weights": self.net.state_dict(), "fields": self.__dict__}, path)

    def load(self, path):
        checkpoint = torch.load(path)
        for name, value in checkpoint["fields"].items():
            setattr(self, name, value)
        self.net.load_state_dict(checkpoint["weights"])

    def load_at_once(self, path):
        checkpoint = torch.load(path)
        self.__dict__.update(checkpoint["fields"])
        self.net.load_state_dict(checkpoint["weights"])

    def load_prior(self, path):
        checkpoint = torch.load(path, map_location="cuda")
        self.prior = checkpoint["prior"]
        self.net.load_state_dict(checkpoint["weights"])

    def assign(self, path):
        weights = torch.load(path)["weights"]
        self.net.load_state_dict(weights, assign=True)


def whole_module(path, head):
    ckpt = torch.load(path)
    net = ckpt["model"]
    net.eval()
    head.load_state_dict(ckpt["head"])
    return net, head.cuda()
