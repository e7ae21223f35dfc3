"""A checkpoint that is restored tensor by tensor, and stays beside what it was copied into."""

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet50


def take_over(net, weights):
    own = net.state_dict()
    for name, weight in weights.items():
        if name in own:
            own[name].copy_(weight)


def train(net, optimizer, loader):
    for images, labels in loader:
        loss = F.cross_entropy(net(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def resume(path, loader):
    net = resnet50().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    last = torch.load(path)  # expect: GPU403
    take_over(net, last["net"])
    optimizer.load_state_dict(last["optimizer"])
    train(net, optimizer, loader)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)


def resume_from_host(path, loader):
    net = resnet50().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    weights = torch.load(path, map_location="cpu")
    for parameter, weight in zip(net.parameters(), weights.values()):
        parameter.data.copy_(weight)
    train(net, optimizer, loader)


class Functional:
    """Its weights are a dict of tensors, and no network."""

    def __init__(self, path):
        self.weights = {"conv": nn.Parameter(torch.zeros(64, 3, 3, 3).cuda())}
        self.last = torch.load(path)  # maybe: GPU403
        for name, weight in self.weights.items():
            weight.data.copy_(self.last["weights"][name])
