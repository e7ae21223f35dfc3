"""A program imports modules of a package that the project has nowhere: they lie in a folder of another name, whose files were
taken over from elsewhere. It raises where the import stands, be that in a function; what may lie on a path, or where a branch
does without, is reached."""

# file: third/shapes/nets.py
from torch import nn


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(3, 512, 3), nn.ReLU(), nn.Conv1d(512, 512, 3))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean(2))


# file: third/shapes/meshes.py
from torch import nn


class Meshes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(3, 512, 3), nn.ReLU(), nn.Conv1d(512, 512, 3))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean(2))


# file: third/shapes/main.py
import argparse

from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData


def train(args):
    if args.kind == "points":
        from network.nets import Points

        net = Points().cuda()
    elif args.kind == "meshes":
        from network.meshes import Meshes

        net = Meshes().cuda()
    else:
        raise ValueError(args.kind)
    opt = optim.SGD(net.parameters(), lr=args.lr)
    for _ in range(args.epochs):
        net.train()
        for x, y in DataLoader(FakeData(), batch_size=64):
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(judge(net))
        net.eval()
        right = 0
        for x, y in DataLoader(FakeData(), batch_size=64):
            right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()  # low: GPU201


def judge(net):
    net.eval()
    right = 0
    for x, y in DataLoader(FakeData(), batch_size=64):
        right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()  # low: GPU201
    return right


def quick(args):
    if args.kind == "points":
        from network.nets import Points as Net
    else:
        from torchvision.models import resnet18 as Net
    net = Net().cuda()
    net.eval()
    right = 0
    for x, y in DataLoader(FakeData(), batch_size=64):
        right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()  # expect: GPU201
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="points")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print(quick(options) if options.quick else train(options))
# file: third/shapes/on_a_path.py
import sys

from torch.utils.data import DataLoader
from torchvision.datasets import FakeData

sys.path.insert(0, "/opt/networks")

from network.nets import Points


def judge(net):
    net.eval()
    right = 0
    for x, y in DataLoader(FakeData(), batch_size=64):
        right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()  # expect: GPU201
    return right


if __name__ == "__main__":
    print(judge(Points().cuda()))
# file: apart/judge.py
from torch.utils.data import DataLoader
from torchvision.datasets import FakeData
from pointclouds.nets import Points


def judge(net):
    net.eval()
    right = 0
    for x, y in DataLoader(FakeData(), batch_size=64):
        right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()  # expect: GPU201
    return right


if __name__ == "__main__":
    print(judge(Points().cuda()))
