"""The networks come out of a registry. One is called after a model that everybody knows to be large; how large the other is
nothing says: that its checkpoint stays through the training is certain, what it costs is not."""

import torch
from registry import get


def go_on_with_any(cfg, path, loader, optimizer):
    network = get(cfg.body)(cfg).cuda()
    checkpoint = torch.load(path)  # low: GPU403
    network.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for images in loader:
        optimizer.zero_grad()
        network(images.cuda()).sum().backward()
        optimizer.step()
