"""The same from the host; and a dict of settings into which the figures of a run are merged."""

import torch
from torch import nn


def main(path, settings, loader):
    net = nn.Transformer(1024, 16, 12, 12).cuda()
    loaded = torch.load(path, map_location="cpu")["model"]
    state = net.state_dict()
    state.update({key: value for key, value in loaded.items() if key in state})
    net.load_state_dict(state)
    figures = torch.load(settings)
    settings = {}
    settings.update(figures)
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = net(x.cuda(), y.cuda()).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return settings
