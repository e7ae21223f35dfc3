"""A text says which device it is, or may: then the branch for "cuda" runs. So does the one for a device of that type."""

import torch
from torchvision.models import resnet50


def batches():
    return torch.utils.data.DataLoader(torch.load("pictures.pt"), batch_size=64)


def a_text():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = resnet50().to(device)
    if device == "cuda":
        net.eval()
        for images, labels in batches():
            print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201


def of_a_type():
    device = torch.device("cuda")
    net = resnet50().to(device)
    if device.type == "cuda":
        net.eval()
        for images, labels in batches():
            print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201


def unlike_a_text():
    device = torch.device("cuda")
    net = resnet50().to(device)
    if device != "cpu":
        net.eval()
        for images, labels in batches():
            print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201


def made_later(device):
    net = resnet50().to(device)
    if device == "cuda":
        net.eval()
        for images, labels in batches():
            print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
    device = torch.device(device)
    return net.to(device)


class Either:
    def __init__(self, device):
        self.device = device
        self.net = resnet50().to(self.device)

    def says(self):
        return self.device if isinstance(self.device, str) else self.device.type

    def look(self):
        if self.device == "cuda":
            self.net.eval()
            for images, labels in batches():
                print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
