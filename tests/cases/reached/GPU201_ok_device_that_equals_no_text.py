"""A `torch.device` equals no text: the branch for "cuda" never runs."""

import torch
from torchvision.models import resnet50


def batches():
    return torch.utils.data.DataLoader(torch.load("pictures.pt"), batch_size=64)


place = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def of_the_file():
    net = resnet50().to(place)
    if place in ("cuda", "gpu"):
        net.eval()
        for images, labels in batches():
            print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())


def of_options(args):
    args.device = torch.device(args.device)
    net = resnet50().to(args.device)
    if args.device == "cuda":
        net.eval()
        for images, labels in batches():
            print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())


class Keeper:
    def __init__(self):
        device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")
        self.device = device
        self.net = resnet50().to(self.device)

    def look(self):
        if self.device == "cuda":
            self.net.eval()
            for images, labels in batches():
                print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())


class Asked:
    def __init__(self, device):
        self.device = device
        self.net = resnet50().to(self.device)

    def says(self):
        return self.device.type == "cuda"

    def look(self):
        if self.device == "cuda":
            self.net.eval()
            for images, labels in batches():
                print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())
