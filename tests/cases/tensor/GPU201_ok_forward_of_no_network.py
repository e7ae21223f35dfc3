"""Objects with a `forward` that nothing shows to be networks; wrappers that are given lists and paths."""

import numpy as np
import torch

device = "cuda"


class Tiles:
    def __init__(self, tilings):
        self.tilings = tilings

    def __call__(self, state):
        x = torch.as_tensor(np.atleast_2d(state), device=device)
        parts = [self.tilings[i].forward(x) for i in range(len(self.tilings))]
        return torch.cat(parts, 1).squeeze().detach().cpu().numpy()


class Cached:
    def __init__(self, load):
        self.detector = load("detector", device=device)
        self.detector.eval()
        self.known = {}

    def __call__(self, batch):
        found = []
        for image in batch:
            if image.name not in self.known:
                self.known[image.name] = self.detector([image]).pred[0].detach()
            found.append(self.known[image.name].to(device))
        return found


def grade(paths, make):
    metric = make("sharpness", device=device)
    metric.eval()
    return [metric(str(path)).item() for path in paths]
