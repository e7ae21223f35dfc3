"""Several checkpoints that are on the host, few weights, one at a time, or none of a network."""

import torch
from torch import nn
from torchvision.models import vgg16

from scoring import score


def average_on_the_host(paths, settings):
    network = vgg16().cuda()
    states = [torch.load(path, map_location="cpu") for path in paths]
    network.load_state_dict({key: sum(state[key] for state in states) / len(states) for key in states[0]})
    return score(network, settings)


def small(paths, settings):
    network = nn.Linear(8, 2).cuda()
    states = [torch.load(path, map_location="cuda") for path in paths]
    for state in states:
        network.load_state_dict(state)
        print(score(network, settings))


def features(paths, network, settings):
    known = [torch.load(path, map_location="cuda") for path in paths]
    return score(network, settings, known)


def one_after_another(paths, settings):
    network = vgg16().cuda()
    for path in paths:
        network.load_state_dict(torch.load(path, map_location="cuda"))
        print(score(network, settings))
