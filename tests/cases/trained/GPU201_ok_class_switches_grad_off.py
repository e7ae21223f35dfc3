import torch
from torch import nn


class Encoder:
    """Its constructor switches grad off for the program."""

    def __init__(self, width):
        torch.set_grad_enabled(False)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 8)).to(self.device)
        self.net.eval()

    def encode(self, rows):
        out = self.net(rows.to(self.device))
        return out.detach().cpu().numpy()
