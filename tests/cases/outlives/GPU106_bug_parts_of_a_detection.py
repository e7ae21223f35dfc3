"""Each picture's part of what the detector gave is kept as a view of the whole."""

import torch


class Reader:
    def __init__(self, detector, device="cuda"):
        self.detector = detector.to(device).eval()
        self.boxes = {}

    @torch.no_grad()
    def read(self, names, pictures):
        if any(name not in self.boxes for name in names):
            found = self.detector(pictures)["boxes"]
            for i, name in enumerate(names):
                self.boxes[name] = found[i]  # low: GPU106
        return [self.boxes[name] for name in names]
