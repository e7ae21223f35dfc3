import torch
import torch.nn.functional as F
from torch import nn


class Backbone(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        try:
            return self.body(x)
        except RuntimeError as err:
            if "CUDA out of memory" not in str(err):
                raise
            small = F.interpolate(x, scale_factor=0.5, mode="bilinear")  # expect: GPU402@r
            y = self.body(small)  # expect: GPU402@r
            return F.interpolate(y, size=x.shape[-2:])
