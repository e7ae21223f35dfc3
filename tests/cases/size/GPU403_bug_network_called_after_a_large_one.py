"""The networks come out of a registry, and nothing says how large they are: that their checkpoints stay through the training is
certain, with an optimizer's state, three times the weights where the training itself takes four."""

import torch
from registry import get


def go_on(cfg, path, loader, optimizer):
    maskRCNN = get(cfg.body)(cfg).cuda()
    checkpoint = torch.load(path)  # expect: GPU403
    maskRCNN.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for images in loader:
        optimizer.zero_grad()
        maskRCNN(images.cuda()).sum().backward()
        optimizer.step()


def go_on_with_any(cfg, path, loader, optimizer):
    network = get(cfg.body)(cfg).cuda()
    checkpoint = torch.load(path)  # expect: GPU403
    network.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for images in loader:
        optimizer.zero_grad()
        network(images.cuda()).sum().backward()
        optimizer.step()
