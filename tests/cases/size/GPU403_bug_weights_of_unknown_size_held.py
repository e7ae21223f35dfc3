"""Weights alone, of a network that only a configuration knows, stay bound while the test runs."""

import sys

import torch
from configs import build

config, path = sys.argv[1:]
net = build(config).cuda()
weights = torch.load(path)  # expect: GPU403
net.load_state_dict(weights["net"])
net.eval()
with torch.no_grad():
    for images, labels in build.test_loader(config):
        print((net(images.cuda()).argmax(1).cpu() == labels).float().mean())
