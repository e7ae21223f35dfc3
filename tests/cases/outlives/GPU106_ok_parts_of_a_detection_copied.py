"""Each part is brought to the host."""

import torch


class Reader:
    def __init__(self, detector, device="cuda"):
        self.detector = detector.to(device).eval()
        self.boxes = {}

    @torch.no_grad()
    def read(self, names, pictures):
        if any(name not in self.boxes for name in names):
            found = self.detector(pictures)["boxes"].cpu()
            for i, name in enumerate(names):
                self.boxes[name] = found[i].clone()
        return [self.boxes[name] for name in names]
