"""A look at the trained network on the CPU: the function makes it, loads it, runs it, and nothing puts it on a GPU."""

import torch
from torch import nn


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(40, 768, num_layers=3, batch_first=True)
        self.head = nn.Linear(768, 256)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def listen(loader, path):
    net = Speaker()
    net.load_state_dict(torch.load(path, map_location="cpu"))
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x).argmax(1) == y).sum().item()  # low: GPU201
    return right


def listen_on_a_gpu(loader, path):
    net = Speaker()
    net.load_state_dict(torch.load(path, map_location="cpu"))
    net.eval()
    net.cuda()
    right = 0
    for x, y in loader:
        right += (net(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right


def listen_where_told(loader, path, place):
    net = Speaker()
    net.load_state_dict(torch.load(path, map_location="cpu"))
    place(net)
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x.cuda()).argmax(1).cpu() == y).sum().item()  # low: GPU201
    return right


def listen_to_one_of_two(loader, state, kind):
    if kind == "deep":
        heard = Speaker()
    else:
        heard = nn.Sequential(nn.Linear(40, 4096), nn.ReLU(), nn.Linear(4096, 4096))
    heard.load_state_dict(state)
    heard.eval()
    right = 0
    for x, y in loader:
        right += (heard(x).argmax(1) == y).sum().item()  # low: GPU201
    return right


def listen_to_one_of_two_on_a_gpu(loader, state, kind):
    if kind == "deep":
        heard = Speaker()
    else:
        heard = nn.Sequential(nn.Linear(40, 4096), nn.ReLU(), nn.Linear(4096, 4096))
    heard.load_state_dict(state)
    heard = heard.cuda().eval()
    right = 0
    for x, y in loader:
        right += (heard(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right
