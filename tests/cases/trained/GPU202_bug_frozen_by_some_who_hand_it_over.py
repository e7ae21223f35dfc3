"""Steps of training that get a network from programs in other files. Of the first one freezes it before, the other does not;
of the second one freezes it and thaws it again, the other all but what it puts on top."""
# file: steps.py
import torch.nn.functional as F


def probe_epoch(net, head, loader, optimizer):
    net.eval()
    for images, labels in loader:
        rows = net(images.cuda())  # low: GPU202
        loss = F.cross_entropy(head(rows.detach()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def tune_epoch(net, head, loader, optimizer):
    net.eval()
    for images, labels in loader:
        rows = net(images.cuda())  # expect: GPU202
        loss = F.cross_entropy(head(rows.detach()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# file: first.py
import torch
from models import build
from steps import probe_epoch, tune_epoch


def main(loader):
    net = build().cuda()
    net.requires_grad_(False)
    head = torch.nn.Linear(512, 10).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(10):
        probe_epoch(net, head, loader, optimizer)
    net.requires_grad_(True)
    for _ in range(10):
        tune_epoch(net, head, loader, optimizer)


if __name__ == "__main__":
    main(torch.utils.data.DataLoader([]))

# file: second.py
import torch
from models import build
from steps import probe_epoch, tune_epoch


def main(loader):
    net = build().cuda()
    head = torch.nn.Linear(512, 10).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(10):
        probe_epoch(net, head, loader, optimizer)
    net.requires_grad_(False)
    net.top = torch.nn.Linear(512, 512).cuda()
    for _ in range(10):
        tune_epoch(net, head, loader, optimizer)


if __name__ == "__main__":
    main(torch.utils.data.DataLoader([]))

# file: models.py
from torch import nn


def build():
    return nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 512, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
