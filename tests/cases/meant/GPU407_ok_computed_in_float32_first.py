"""The network computes in float32 before it is halved: it has to be there as it is."""

import torch
from torchvision.models import vit_l_16


@torch.no_grad()
def compare(images):
    net = vit_l_16()
    net = net.cuda()
    exact = net(images.cuda())
    net = net.half()
    return (net(images.cuda().half()) - exact).abs().max().item()
