"""A program imports a name that a module of the project does not have, or a module that its package does not have: it cannot be
started. One that the module may have, from wherever, can."""
# file: nets/__init__.py
# file: nets/plain.py
from torch import nn


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


Wide = Plain
# file: nets/open.py
from .plain import *


def __getattr__(name):
    return globals()[name]
# file: nets/chosen.py
try:
    from fast_nets import Fast
except ImportError:
    from .plain import Plain as Fast
# file: data/__init__.py
# file: data/pictures.py
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def load():
    return DataLoader(ImageFolder("val"), batch_size=64)
# file: name_not_there.py
from data.pictures import load
from nets.plain import Narrow, Plain


def score(net, loader):
    net.eval()
    right = 0
    for images, labels in loader:
        right += (net(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # low: GPU201
    return right


if __name__ == "__main__":
    print(score(Plain().cuda(), load()))
# file: module_not_there.py
from data.pictures import load
from nets.plain import Plain


def score(net, loader):
    net.eval()
    right = 0
    for images, labels in loader:
        right += (net(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # low: GPU201
    return right


if __name__ == "__main__":
    print(score(Plain().cuda(), load()))
# file: in_the_package/__init__.py
# file: in_the_package/relative.py
from data.pictures import load
from nets.plain import Plain


def score(net, loader):
    net.eval()
    right = 0
    for images, labels in loader:
        right += (net(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # low: GPU201
    return right


if __name__ == "__main__":
    print(score(Plain().cuda(), load()))
# file: names_there.py
from data.pictures import load
from nets import chosen, plain
from nets.chosen import Fast
from nets.plain import Plain, Wide

try:
    from nets.plain import Narrow
except ImportError:
    Narrow = None


def score(net, loader):
    net.eval()
    right = 0
    for images, labels in loader:
        right += (net(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # expect: GPU201
    return right


if __name__ == "__main__":
    print(score(Fast().cuda(), load()))
# file: built.py
from data.pictures import load
from nets.plain import Plain


def score(net, loader):
    net.eval()
    right = 0
    for images, labels in loader:
        right += (net(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # expect: GPU201
    return right


if __name__ == "__main__":
    print(score(Plain().cuda(), load()))
