"""Results that become arrays undetached, which torch refuses for what requires grad: no graph was ever made here."""

import numpy as np
import torch
from torch import nn


def scores(network: nn.Module, loader):
    network.eval()
    rows = []
    for images in loader:
        out = network(images.cuda())
        rows.append(np.array(out.cpu()))
    return rows


def columns(network: nn.Module, loader):
    network.eval()
    rows = []
    for images in loader:
        rows.append(np.asarray(network(images.cuda()).squeeze(1).cpu()))
    return rows


class Gallery:
    def __init__(self, renderer, spare_renderer):
        self.renderer, self.spare_renderer = renderer, spare_renderer

    def shots(self, scenes, spare=False):
        renderer = self.spare_renderer if spare else self.renderer
        shots = []
        for vertices, faces in scenes:
            shot = renderer(vertices.cuda(), faces.cuda(), merged=True)
            shots.append(shot)  # maybe: GPU102
        shots = torch.cat(shots, 0).cpu().numpy()
        return shots[..., :3] * 255
