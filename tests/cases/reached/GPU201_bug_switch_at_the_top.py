"""A switch at the top of a script is off, and has to be set before its branch runs."""

import torch
from torchvision.models import resnet50

SCORES = False
COUNTS = True
LOUD = True

network = resnet50().cuda()


def scores(loader):
    network.eval()
    found = []
    if SCORES:
        for pictures in loader:
            found.append(network(pictures.cuda()).argmax(1).tolist())  # low: GPU201
    return found


def counts(loader, wanted):
    network.eval()
    hits = 0
    if COUNTS:
        for pictures in loader:
            hits += (network(pictures.cuda()).argmax(1) == wanted).sum().item()  # expect: GPU201
    return hits


def hush():
    global LOUD
    LOUD = False


def reports(loader):
    network.eval()
    if not LOUD:
        for pictures in loader:
            print(network(pictures.cuda()).argmax(1).tolist())  # expect: GPU201


def of_its_own(loader, SCORES):
    network.eval()
    if SCORES:
        for pictures in loader:
            print(network(pictures.cuda()).argmax(1).tolist())  # expect: GPU201
