"""A layer keeps its state, two calls below the network that another file trains."""
# file: layers.py
import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cell = nn.LSTMCell(width, width)
        self.hidden, self.memory = torch.zeros(4, width).cuda(), torch.zeros(4, width).cuda()

    def forward(self, rows):
        hidden, memory = self.cell(rows, (self.hidden, self.memory))  # expect: GPU103@s
        self.hidden = hidden  # expect: GPU103@s
        self.memory = memory
        return self.hidden

# file: networks.py
from layers import Recurrent
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 64, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.over_time = Recurrent(64)
        self.head = nn.Linear(64, 10)

    def forward(self, frames):
        return self.head(self.over_time(self.body(frames)))

# file: train.py
import torch
from networks import Net
from torch.nn.functional import cross_entropy


def train(net, loader, optimizer):
    for frames, labels in loader:
        loss = cross_entropy(net(frames.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


if __name__ == "__main__":
    net = Net().cuda()
    train(net, torch.utils.data.DataLoader([]), torch.optim.SGD(net.parameters(), lr=0.1))
