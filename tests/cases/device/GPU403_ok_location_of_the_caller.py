import torch
from torch import nn


class OnHost(nn.Module):
    """Where the device is the caller's to say, or the host by default, nothing is known."""

    def __init__(self, width: int, device="cpu", second=None):
        super().__init__()
        self.device = torch.device(device)
        self.other = torch.device(second)
        self.body = nn.Linear(width, width).to(self.device)

    def restore(self, path):
        payload = torch.load(path, map_location=self.device)
        self.body.load_state_dict(payload["body"])
