"""Commands that begin without grad, by a decorator of their own or where a callback's owner may switch it off."""

import argparse

import torch
from engine import Engine
from torchvision import models


@torch.no_grad()
def evaluate(args):
    network = models.resnet18().to("cuda")
    hits = 0
    for images, labels in args.loader:
        scores = network(images.cuda())
        hits += (scores.argmax(1).cpu() == labels).sum().item()
    print(hits)


def on_epoch(engine):
    network = models.resnet18().to("cuda")
    for images in engine.loader:
        print(network(images.cuda()).argmax(1).tolist())  # low: GPU201


engine = Engine()
engine.on("epoch", on_epoch)
parser = argparse.ArgumentParser()
parser.set_defaults(func=evaluate)
