"""Of three files with a class of one name the program chooses two: nothing makes the third's. That another program imports that
name of a library, and settings by their names, says nothing."""
# file: setup.py
from setuptools import find_packages, setup

setup(name="speech", packages=find_packages())
# file: speech/__init__.py
# file: speech/audio.py
def read(path):
    return path
# file: settings/small.py
RATE = 1e-4
# file: training/__init__.py
# file: training/plain.py
import torch


class Trainer:
    def __init__(self, net):
        self.net = net.cuda()

    def train(self, loader):
        optimizer = torch.optim.Adam(self.net.parameters())
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(self.net(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
# file: training/mixed.py
import torch


class Trainer:
    def __init__(self, net):
        self.net = net.cuda()

    def train(self, loader):
        optimizer = torch.optim.Adam(self.net.parameters())
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(self.net(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
# file: training/first_try.py
import torch


class Trainer:
    def __init__(self, net):
        self.net = net.cuda()

    def train(self, loader):
        optimizer = torch.optim.Adam(self.net.parameters())
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(self.net(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # low: GPU201
# file: training/start.py
import importlib
import sys

import torch
from torchvision.models import resnet50
from training.plain import Trainer

settings = importlib.import_module(f"settings.{sys.argv[1]}")
if settings.RATE < 1e-3:
    from training.mixed import Trainer

if __name__ == "__main__":
    Trainer(resnet50()).train(torch.load("batches.pt"))
# file: training/by_library.py
from transformers import Trainer, TrainingArguments

# Here we instantiate the trainer.
if __name__ == "__main__":
    Trainer(args=TrainingArguments("out")).train()
