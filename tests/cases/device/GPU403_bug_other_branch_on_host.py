import torch
from torch import nn


class Features(nn.Module):
    def __init__(self, make, weights):
        super().__init__()
        net = make()
        if torch.cuda.is_available():
            state = torch.load(weights)  # low: GPU403
        else:
            state = torch.load(weights, map_location="cpu")
        net.load_state_dict(state)
        self.features = net.features
