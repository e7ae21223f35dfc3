"""The prefix of a wrapper is taken off the keys before the weights are copied."""

from collections import OrderedDict

import torch


def by_comprehension(net, path):
    ckpt = torch.load(path)  # low: GPU403
    weights = {k.replace("module.", ""): v for k, v in ckpt["state_dict"].items()}
    net.load_state_dict(weights)
    return net.cuda()


def by_loop(net, path):
    weights = torch.load(path)["net"]  # low: GPU403
    renamed = OrderedDict()
    for key, value in weights.items():
        renamed[key[7:]] = value
    net.load_state_dict(renamed)
    return net.cuda()


def by_choice(net, path):
    ckpt = torch.load(path)  # low: GPU403
    weights = ckpt["model"] if "model" in ckpt else ckpt
    net.load_state_dict(weights)
    return net.cuda()


def of_a_module(net, path):
    net.load_state_dict(torch.load(path)["model"].float().state_dict())  # low: GPU403
    return net.cuda()
