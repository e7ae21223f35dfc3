"""Loaded on the CPU, and brought back to it: in between it runs where the caller says."""

import torch


class Predictor:
    def __init__(self, path, device="cpu"):
        self.device = device
        self.model = torch.load(path, map_location="cpu").eval()

    def predict(self, loader):
        self.model.to(self.device)
        kept = []
        with torch.no_grad():
            for x in loader:
                kept.append(self.model(x.to(self.device)))  # low: GPU102
        self.model.to("cpu")
        return torch.cat(kept).cpu().numpy()
