"""Files that no training of this program has written: downloaded, shipped with it, bare weights for inference."""

import os

import torch
from hub import cached_download


def published(net, name):
    path = cached_download(name)
    state = torch.load(path)
    net.load_state_dict(state["model"])
    return net.cuda()


def shipped(net):
    path = os.path.join(os.path.dirname(__file__), "weights", "net.pt")
    net.load_state_dict(torch.load(path)["model"])
    return net.cuda()


def answer(net, path, image):
    weights = torch.load(path)
    net.load_state_dict(weights, strict=False)
    net = net.cuda()
    with torch.no_grad():
        return net(image.cuda())
