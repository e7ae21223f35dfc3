"""The end of a network's file goes through some data to see that the network runs, and prints that it does; others import the
network. One that scores what it goes through is a program."""
# file: data.py
from torchvision.datasets import ImageFolder


class Pictures(ImageFolder):
    pass
# file: looked_at.py
from data import Pictures
from torch import nn
from torch.utils.data import DataLoader


class Looked(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


if __name__ == "__main__":
    pictures = Pictures("train")
    loader = DataLoader(pictures, batch_size=2)
    net = Looked().cuda()

    net.train()
    for images, labels in loader:
        out = net(images.cuda())  # low: GPU201
        print("train: fine")

    net.eval()
    for number, (images, labels) in enumerate(loader):
        out = net(images.cuda())  # maybe: GPU201
        print(f"test: fine, {number}")
# file: scored.py
from data import Pictures
from torch import nn
from torch.utils.data import DataLoader


class Scored(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


if __name__ == "__main__":
    pictures = Pictures("train")
    loader = DataLoader(pictures, batch_size=2)
    net = Scored().cuda()

    net.eval()
    right = 0
    for images, labels in loader:
        right += (net(images.cuda()).argmax(1) == labels.cuda()).sum().item()  # expect: GPU201
    print(right)
# file: told.py
from data import Pictures
from torch import nn
from torch.utils.data import DataLoader


class Told(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


if __name__ == "__main__":
    pictures = Pictures("train")
    loader = DataLoader(pictures, batch_size=2)
    net = Told().cuda()

    net.eval()
    for images, labels in loader:
        best = net(images.cuda()).argmax(1)  # expect: GPU201
        print(best.tolist())
# file: run.py
import torch
from looked_at import Looked
from scored import Scored
from told import Told


def main(loader):
    for net in (Looked().cuda(), Scored().cuda(), Told().cuda()):
        optimizer = torch.optim.Adam(net.parameters())
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main(torch.load("batches.pt"))
