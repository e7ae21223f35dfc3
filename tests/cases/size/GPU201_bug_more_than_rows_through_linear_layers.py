"""Evaluations of networks whose layers are linear or tables as well, and which save more than the rows of a batch."""
# file: networks.py
import torch
from torch import nn


class Attends(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        scores = torch.softmax(self.query(x) @ self.key(x).mT, -1)
        x = x + self.narrow(torch.relu(self.wide(scores @ self.value(x))))
        return self.head(x.mean(1))


class Field(nn.Module):
    def __init__(self, width=256, depth=8):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3 if not i else width, width) for i in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, points):
        for layer in self.layers:
            points = torch.sin(30 * layer(points))
        return self.head(points)


class Factors(nn.Module):
    def __init__(self, readers, books, width):
        super().__init__()
        self.readers, self.books = nn.Embedding(readers, width), nn.Embedding(books, width)

    def forward(self, readers):
        return torch.matmul(self.readers(readers), self.books.weight.t())


class Chain(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(width, width) for _ in range(9)))

    def forward(self, x):
        return self.layers(x)
# file: run.py
import torch
from networks import Attends, Chain, Factors, Field
from torch.utils.data import DataLoader


def accuracy(data):
    net = Attends().cuda()
    net.load_state_dict(torch.load("attends.pt", map_location="cpu"))
    net.eval()
    right = 0
    for x, y in DataLoader(data, batch_size=256):
        right += (net(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    return right


def distances(data):
    net = Field().cuda()
    net.load_state_dict(torch.load("field.pt", map_location="cpu"))
    net.eval()
    total = 0
    for points, distance in DataLoader(data, batch_size=256):
        total += (net(points.cuda()) - distance.cuda()).abs().sum().item()  # expect: GPU201
    return total


def best(data, readers, books):
    net = Factors(readers, books, 64).cuda()
    net.load_state_dict(torch.load("factors.pt", map_location="cpu"))
    net.eval()
    found = []
    for batch in DataLoader(data, batch_size=4096):
        found.append(net(batch.cuda()).topk(10).indices.cpu())  # expect: GPU201
    return torch.cat(found)


def of_the_whole_room(points):
    net = Chain().cuda()
    net.load_state_dict(torch.load("chain.pt", map_location="cpu"))
    net.eval()
    found = []
    for begin in range(0, len(points), 1 << 20):
        found.append(net(points[begin : begin + (1 << 20)].cuda()).argmax(-1).cpu())  # note: GPU201
    return torch.cat(found)
