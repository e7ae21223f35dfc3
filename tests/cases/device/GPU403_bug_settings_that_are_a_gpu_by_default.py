"""The place of what is loaded is a field of the settings, and a GPU unless somebody asks for another."""

import argparse
from dataclasses import dataclass, replace

import torch
from torchvision.models import vit_l_16


@dataclass
class Settings:
    device: str = "cuda:1"
    folds: int = 5
    epochs: int = 30


def folds(settings: Settings, loaders):
    for fold in range(settings.folds):
        own = replace(settings, epochs=fold + 10)
        net = vit_l_16().to(own.device)
        optimizer = torch.optim.AdamW(net.parameters())
        last = torch.load("last.pth", map_location=own.device)  # expect: GPU403
        net.load_state_dict(last["net"])
        optimizer.load_state_dict(last["optimizer"])
        for epoch in range(own.epochs):
            train_one_epoch(net, optimizer, loaders[fold])
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, "last.pth")


def train_one_epoch(net, optimizer, loader):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_command_line(loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--place", default="cuda:0")
    parser.add_argument("--spare", default="cpu")
    args = parser.parse_args()
    net = vit_l_16().to(args.place)
    optimizer = torch.optim.AdamW(net.parameters())
    last = torch.load("last.pth", map_location=args.place)  # expect: GPU403
    net.load_state_dict(last["net"])
    optimizer.load_state_dict(last["optimizer"])
    train_one_epoch(net, optimizer, loader)


def ok_to_the_host(loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--spare", default="cpu")
    args = parser.parse_args()
    net = vit_l_16().cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    last = torch.load("last.pth", map_location=args.spare)
    net.load_state_dict(last["net"])
    optimizer.load_state_dict(last["optimizer"])
    train_one_epoch(net, optimizer, loader)
