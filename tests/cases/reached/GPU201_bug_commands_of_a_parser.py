"""Functions that a command line, a process or a thread starts: given to somebody, but to nobody who switches grad off."""

import argparse
from functools import partial

import click
import fire
import torch
import tyro
from torch import nn
from torchvision import models


def evaluate(args):
    network = models.resnet18().to("cuda")
    hits = 0
    for images, labels in args.loader:
        scores = network(images.cuda())  # expect: GPU201
        hits += (scores.argmax(1).cpu() == labels).sum().item()
    print(hits)


def rank(args):
    network = models.resnet18().to("cuda")
    for images, names in args.loader:
        best = network(images.cuda()).argmax(1).tolist()  # expect: GPU201
        print(names, best)


def report(loader):
    network = nn.Linear(4096, 2048).cuda()
    total = 0.0
    for batch in loader:
        total += network(batch.cuda()).mean().item()  # expect: GPU201
    print(total)


def compare(loader, scale):
    network = nn.Linear(4096, 2048).cuda()
    total = 0.0
    for batch in loader:
        total += network(batch.cuda()).mean().item() * scale  # expect: GPU201
    print(total)


def measure(loader):
    network = nn.Linear(4096, 2048).cuda()
    total = 0.0
    for batch in loader:
        total += network(batch.cuda()).std().item()  # expect: GPU201
    print(total)


def picture(loader):
    network = nn.Linear(4096, 2048).cuda()
    for batch in loader:
        print(network(batch.cuda()).std().item())  # expect: GPU201


class Tool:
    def __init__(self, loader):
        self.loader = loader
        self.network = models.resnet18().to("cuda")

    def parser(self):
        parser = argparse.ArgumentParser()
        parser.set_defaults(run=self.show)
        return parser

    def show(self, args):
        for images in self.loader:
            print(self.network(images.cuda()).argmax(1).tolist())  # expect: GPU201


@click.group()
def cli():
    torch.manual_seed(0)


cli.add_command(report)
click.command()(picture)


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    commands.add_parser("evaluate").set_defaults(func=evaluate)
    ranking = commands.add_parser("rank")
    ranking.set_defaults(func=rank, top=5)
    args = parser.parse_args()
    args.func(args)


if __name__ == "__main__":
    fire.Fire({"compare": partial(compare, scale=2)})
    tyro.cli(measure)
    main()
