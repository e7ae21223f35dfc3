"""Models that this program never moves to a GPU: their file may have come from anywhere."""

import os

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, gpu=True):
        super().__init__()
        self.gpu = gpu
        self.rnn = nn.GRU(width, width)

    def forward(self, x):
        state = torch.zeros(1, x.size(1), self.rnn.hidden_size)
        if self.gpu:
            state = state.cuda()
        return self.rnn(x, state)


def build(folder):
    encoder = Encoder(64, gpu=False)
    encoder.load_state_dict(torch.load(os.path.join(folder, "encoder.pkl")))
    decoder = nn.Linear(64, 10)
    checkpoint = torch.load(os.path.join(folder, "decoder.pkl"))
    decoder.load_state_dict(checkpoint["weights"])
    return encoder, decoder


def make_loader(policies):
    def load(name, path):
        state = torch.load(path)
        policies[name].load_state_dict(state["model"])

    return load


def on_host(net, path):
    net.load_state_dict(torch.load(path)["net"])
    return net.to("cpu")
