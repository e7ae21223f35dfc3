"""`.cpu()` moves the activation, and its graph stays on the GPU until the next picture."""

import torch


class Probe:
    def __init__(self, backbone):
        self.handle = backbone.layer3.register_forward_hook(self.look)
        self.features = None

    def look(self, layer, given, out):
        self.features = out.float().cpu()  # low: GPU105

    def describe(self):
        return self.features.mean((2, 3)).tolist()
