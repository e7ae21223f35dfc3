import torch
from torch import nn


class Encoder:
    """Grad is off while the weights are made, and on again afterwards."""

    def __init__(self, width):
        torch.set_grad_enabled(False)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = nn.Sequential(nn.Linear(width, 4096), nn.ReLU(), nn.Linear(4096, 2048)).to(self.device)
        self.net.eval()
        torch.set_grad_enabled(True)

    def encode(self, rows):
        out = self.net(rows.to(self.device))  # expect: GPU201
        return out.detach().cpu().numpy()
