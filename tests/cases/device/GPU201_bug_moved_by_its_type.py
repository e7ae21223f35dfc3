"""Networks that are on a GPU by the type of their weights, or because their own constructor puts them there."""
# file: networks.py
from torch import nn


class Caption(nn.Module):
    def __init__(self, words, device):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 256, 3))
        self.head = nn.Linear(256, words)
        self.to(device)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


# file: scores.py
import numpy as np
import hydra
import torch
from networks import Caption
from torch.utils.data import DataLoader
from torchvision.models import inception_v3


def inception_score(pictures, cuda=True):
    if cuda:
        kind = torch.cuda.FloatTensor
    else:
        kind = torch.FloatTensor
    network = inception_v3(pretrained=True).type(kind)
    network.eval()
    found = []
    for batch in DataLoader(pictures, batch_size=32):
        found.append(network(batch.type(kind)).softmax(1).data.cpu().numpy())  # expect: GPU201
    return np.concatenate(found)


def on_the_host_ok(pictures):
    network = inception_v3(pretrained=True).type(torch.FloatTensor)
    network.eval()
    found = []
    for batch in DataLoader(pictures, batch_size=32):
        found.append(network(batch.type(torch.FloatTensor)).softmax(1).data.numpy())  # low: GPU201
    return np.concatenate(found)


class Captions:
    def __init__(self, words):
        self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        self.network = Caption(words, self.device)

    def validate(self, pictures):
        self.network.eval()
        right = 0
        for x, y in DataLoader(pictures, batch_size=32):
            right += (self.network(x).argmax(1) == y).sum().item()  # expect: GPU201
        return right


class Agent:
    """What a configuration makes is wherever that says, and is moved to a device of the caller's besides."""

    def __init__(self, cfg, device):
        self.device = torch.device(device)
        self.actor = hydra.utils.instantiate(cfg.actor).to(self.device)
        self.optimizer = torch.optim.Adam(self.actor.parameters())

    def act(self, frames):
        found = self.actor(torch.as_tensor(frames).to(self.device))  # note: GPU201
        return found.mean.detach().cpu().numpy()[0]

    def acts(self, episodes):
        self.actor.eval()
        return [self.act(frames) for frames in episodes]
