"""The entries that fit are merged into the network's own state, and that is loaded: what was read stays under its name."""

import torch
from torch import nn


def main(path, loader):
    net = nn.Transformer(1024, 16, 12, 12).cuda()
    loaded = torch.load(path)["model"]  # expect: GPU403
    state = net.state_dict()
    fitting = {key: value for key, value in loaded.items() if key in state}
    state.update(fitting)
    net.load_state_dict(state)
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = net(x.cuda(), y.cuda()).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
