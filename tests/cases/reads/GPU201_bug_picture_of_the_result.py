"""What a network makes is written as a picture: whoever writes it reads numbers."""

import torch
from torch import nn
from torchvision.transforms.functional import to_pil_image
from torchvision.utils import make_grid


def grid(network: nn.Module, pictures, writer):
    network.eval()
    made = network(pictures.cuda())  # expect: GPU201
    writer.add_image("made", make_grid(made))


def first(network: nn.Module, pictures):
    network.eval()
    return to_pil_image(network(pictures.cuda())[0].cpu())  # expect: GPU201
