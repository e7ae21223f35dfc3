import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return self.mix(x)


if __name__ == "__main__":
    block = Block(16).eval().cuda()
    y = block(torch.randn(3, 16).cuda())
    print(y.shape, y.mean().item())
