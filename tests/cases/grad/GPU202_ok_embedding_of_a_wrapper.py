"""A module that only wraps a network to be asked: what its forward gives has no graph, and who asks switches grad off."""

import numpy as np
import torch
from torch import nn


class Speaker(nn.Module):
    def __init__(self, network, features, device):
        super().__init__()
        self.network, self.features, self.device = network.to(device), features, device
        self.network.load_state_dict(torch.load("speaker.pt", map_location="cpu"))
        self.network.eval()

    def forward(self, sound):
        if isinstance(sound, np.ndarray):
            sound = torch.from_numpy(sound)
        heard = self.network(self.features(sound).to(self.device))
        return heard.detach().cpu()


class Faces(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.network.eval()

    def forward(self, picture):
        scores = self.network(picture.cuda())[0]
        first = scores[7:9].softmax(0).detach().cpu().tolist()
        second = scores[9:].softmax(0).detach().cpu().tolist()
        return [first, second]


def train(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
