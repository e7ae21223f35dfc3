"""Methods of a class that no file of the program makes an object of, called as others are: nobody runs them."""

# file: train.py
import torch
from evaluation import Evaluation
from network import make

if __name__ == "__main__":
    net = make().cuda()
    Evaluation(net).run(torch.utils.data.DataLoader([]))

# file: network.py
from torch import nn


def make():
    return nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3))

# file: evaluation.py
import torch
from torch import nn


class Evaluation:
    def __init__(self, net: nn.Module):
        self.net = net

    def run(self, loader):
        self.net.eval()
        right = 0
        for inputs, labels in loader:
            right += (self.net(inputs.cuda()).argmax(1) == labels.cuda()).sum().item()  # expect: GPU201
        return right


class OlderEvaluation:
    def __init__(self, net: nn.Module):
        self.net = net

    def run(self, loader):
        self.net.eval()
        right = 0
        for inputs, labels in loader:
            right += (self.net(inputs.cuda()).argmax(1) == labels.cuda()).sum().item()  # low: GPU201
        return right
