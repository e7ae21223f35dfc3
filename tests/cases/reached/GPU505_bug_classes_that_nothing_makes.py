"""What a program makes runs; what nothing in it makes is a note."""

# file: main.py
import torch
from nets import Used

if __name__ == "__main__":
    model = Used().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(8, 4, 3, 64, 64):
        loss = model(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# file: nets.py
import torch
from torch import nn


class Used(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)

    def forward(self, x):
        b, c, h, w = x.shape
        return self.conv(x) + torch.zeros(b, c, h, w).cuda().mean()  # expect: GPU505


class Older(nn.Module):
    def __init__(self):
        super(Older, self).__init__()
        self.conv = nn.Conv2d(3, 3, 3)

    def forward(self, x):
        b, c, h, w = x.shape
        return self.conv(x) + torch.zeros(b, c, h, w).cuda().mean()  # note: GPU505
