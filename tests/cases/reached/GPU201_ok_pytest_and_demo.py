import pytest
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d))

    def forward(self, x):
        return x + self.f(x)


@pytest.mark.parametrize("d", [8, 16])
def test_block_shape(d):
    block = Block(d)
    x = torch.randn(2, d)
    assert block(x).shape == x.shape  # maybe: GPU201


def test_eval_is_deterministic():
    block = Block(8).eval()
    x = torch.randn(2, 8)
    assert torch.equal(block(x), block(x))  # maybe: GPU201


if __name__ == "__main__":
    net = Block(32)
    y = net(torch.rand(4, 32))  # maybe: GPU201
    print(y.shape)
