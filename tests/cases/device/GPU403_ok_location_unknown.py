"""Locations that the caller chooses, or that are the CPU."""

import torch
from torch import nn


class Resumable:
    def __init__(self, device, network: nn.Module):
        self.device = device
        self.host = torch.device("cpu")
        self.network = network.to("cuda" if device is None else device)

    def resume(self, path, weights):
        state = torch.load(path, map_location=self.device)
        self.network.load_state_dict(state["network"])
        self.network.load_state_dict(torch.load(weights, map_location=self.host))
