"""A file of that name that pytest collects: it runs a network twice on made-up input."""
# file: matting_test.py
import pytest
import torch

from matting.net import MattingNet


@pytest.fixture
def net():
    return MattingNet(3, 1).to("cuda" if torch.cuda.is_available() else "cpu").eval()


@pytest.mark.parametrize("size", [32, 64])
def test_every_side_has_the_size_of_the_picture(net, size):
    device = next(net.parameters()).device
    sides = net(torch.randn(1, 3, size, size, device=device))
    assert [side.shape[-1] for side in sides] == [size] * 3
    assert all(side.isfinite().all().item() for side in sides)
# file: matting/net.py
from torch import nn


class MattingNet(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.stem = nn.Conv2d(inputs, 64, 3, padding=1)
        self.sides = nn.ModuleList(nn.Conv2d(64, outputs, 3, padding=1) for _ in range(3))

    def forward(self, x):
        x = self.stem(x)
        return tuple(side(x) for side in self.sides)
