"""A way to test that the command line may ask for, whatever the program itself sets."""

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
        votes = sum(net(x.cuda()).softmax(1) for _ in range(settings.voters))  # expect: GPU201
        right += (votes.argmax(1) == y.cuda()).sum().item()
    return {"right": right, "test_kind": "votes"}
# file: main.py
import argparse

import torch
from testing import test
from torchvision.models import resnet50

parser = argparse.ArgumentParser()
parser.add_argument("--voters", type=int, default=8)
parser.add_argument("--quick", action="store_true")
parser.add_argument("--test-kind", default="mean")
settings = parser.parse_args()
if settings.quick:
    settings.test_kind = "mean"

if __name__ == "__main__":
    net = resnet50().cuda()
    net.load_state_dict(torch.load("net.pth", map_location="cpu"))
    print(test(net, torch.load("batches.pt"), settings))
