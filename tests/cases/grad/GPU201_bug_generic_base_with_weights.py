"""The same where the base has weights."""
# file: networks.py
from typing import Generic, TypeVar

import torch
from torch import nn

S = TypeVar("S")


class Base(nn.Module, Generic[S]):
    def __init__(self, width):
        super().__init__()
        self.look = nn.Conv2d(3, width, 3)


class Eye(Base[int]):
    def forward(self, pictures):
        return self.look(pictures).mean((2, 3))
# file: look.py
import torch
from networks import Eye

eye = Eye(64).cuda()
eye.load_state_dict(torch.load("eye.pt", map_location="cpu"))
eye.eval()
for pictures in torch.load("batches.pt"):
    print(eye(pictures.cuda()).argmax(1).tolist())  # expect: GPU201
