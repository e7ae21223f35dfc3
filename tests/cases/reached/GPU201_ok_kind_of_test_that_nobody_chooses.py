"""Of three ways to test, one is asked for by the whole program; the others stand in branches for texts that nobody sets."""

# file: testing.py
import torch


def test(net, batches, settings):
    if settings.test_kind == "mean":
        return test_once(net, batches)
    elif settings.test_kind == "votes":
        return test_votes(net, batches, settings)
    raise ValueError("no such kind")


def test_once(net, batches):
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in batches:
            right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return {"right": right, "test_kind": "mean"}


def test_votes(net, batches, settings):
    net.eval()
    right = 0
    for x, y in batches:
        votes = sum(net(x.cuda()).softmax(1) for _ in range(settings.voters))  # low: GPU201
        right += (votes.argmax(1) == y.cuda()).sum().item()
    return {"right": right, "test_kind": "votes"}
# file: main.py
import argparse

import torch
from testing import test
from torchvision.models import resnet50

parser = argparse.ArgumentParser()
parser.add_argument("--voters", type=int, default=8)
settings = parser.parse_args()
settings.test_kind = "mean"  # or "votes"

if __name__ == "__main__":
    net = resnet50().cuda()
    net.load_state_dict(torch.load("net.pth", map_location="cpu"))
    print(test(net, torch.load("batches.pt"), settings))
