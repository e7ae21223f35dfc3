import torch
from torch import nn


class WorldModel(nn.Module):
    def __init__(self, width: int, device="cuda"):
        super().__init__()
        self.device = torch.device(device)
        self.body = nn.Linear(width, width).to(self.device)

    def save(self, path):
        torch.save({"body": self.body.state_dict()}, path)

    def restore(self, path):
        payload = torch.load(path, map_location=self.device)  # low: GPU403
        if "body" not in payload:
            raise ValueError(path)
        self.body.load_state_dict(payload["body"])
