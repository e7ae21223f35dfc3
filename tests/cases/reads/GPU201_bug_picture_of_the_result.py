"""What a network makes is written as a picture: whoever writes it reads numbers."""

import torch
from torch import nn
from torchvision.transforms.functional import to_pil_image
from torchvision.utils import make_grid, save_image


def show(network: nn.Module, picture):
    network.eval()
    save_image(network(picture.cuda()), "shown.png")  # expect: GPU201


def grid(network: nn.Module, pictures, writer):
    network.eval()
    made = network(pictures.cuda())  # expect: GPU201
    writer.add_image("made", make_grid(made))


def first(network: nn.Module, pictures):
    network.eval()
    return to_pil_image(network(pictures.cuda())[0].cpu())  # expect: GPU201


def train(network: nn.Module, loader, loss_of):
    optimizer = torch.optim.Adam(network.parameters())
    for number, (pictures, wanted) in enumerate(loader):
        loss = loss_of(network(pictures.cuda()), wanted.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            save_image(network(pictures.cuda()), f"{number}.png")  # expect: GPU201|GPU202
