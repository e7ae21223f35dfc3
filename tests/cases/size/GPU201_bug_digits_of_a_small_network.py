"""A network for digits, some ten thousand weights, is tested with grad on: that is so, and hardly matters."""

import torch
from torch import nn


class Digits(nn.Module):
    def __init__(self, channels=1, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, classes)

    def forward(self, x):
        x = torch.relu(nn.functional.max_pool2d(self.conv1(x), 2))
        x = torch.relu(nn.functional.max_pool2d(self.conv2(x), 2))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def main(train_loader, test_loader):
    net = Digits().cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(accuracy(net, test_loader))


def accuracy(net, loader):
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x.cuda()).argmax(1).cpu() == y).sum().item()  # low: GPU201
    return right / len(loader.dataset)
