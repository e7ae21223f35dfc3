"""A script reads a name at its top that nothing binds, and gets no further; what ran before it has run. One that a star may bring
may be bound, and a text without imports is part of another."""
# file: stops.py
import torch
from torchvision.models import resnet50

world = OpenWorld()
net = resnet50().cuda().eval()
for images, labels in torch.load("batches.pt"):
    print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # low: GPU201
# file: runs_before.py
import torch
from torchvision.models import resnet50


def score(net, loader):
    net.eval()
    for images, labels in loader:
        print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201


score(resnet50().cuda(), torch.load("batches.pt"))
print(finish)
# file: star.py
import torch
from torchvision.models import *

world = OpenWorld()
net = resnet50().cuda().eval()
for images, labels in torch.load("batches.pt"):
    print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
# file: filled_in.py
import torch
from torchvision.models import resnet50

# seed = ...
torch.manual_seed(seed)
net = resnet50().cuda().eval()
for images, labels in torch.load("batches.pt"):
    print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
# file: maybe.py
import torch
from torchvision.models import resnet50

try:
    world = OpenWorld()
except NameError:
    world = None
net = resnet50().cuda().eval()
for images, labels in torch.load("batches.pt"):
    print((net(images.cuda()).argmax(1) == labels.cuda()).sum().item())  # expect: GPU201
