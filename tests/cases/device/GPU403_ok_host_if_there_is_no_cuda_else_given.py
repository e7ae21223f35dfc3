"""The place is the caller's."""

import torch


def restore(path, net, place=None):
    if place is None:
        place = "cpu"
    net.load_state_dict(torch.load(path, map_location=place)["net"])
