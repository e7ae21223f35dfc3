"""Large networks go to the GPU in float32 and are halved there, in one chain and in two statements."""

import torch
from torch import nn
from torchvision.models import vit_l_16

device = torch.device("cuda")


class Wide(nn.Module):
    def __init__(self, width=8192):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


def features(images):
    model = vit_l_16().to(device).eval().to(torch.bfloat16)  # expect: GPU407
    with torch.no_grad():
        return model(images.to(device, torch.bfloat16)).cpu()


def widened(rows):
    net = Wide()
    net = net.cuda()
    net.eval()
    net = net.half()  # expect: GPU407
    with torch.no_grad():
        return net(rows.cuda().half()).cpu()
