"""Networks whose classes, makers, helpers and contexts freeze them, or only seem to, and evaluations that run them."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from elsewhere import BaseNetwork, build_network, prepare
from torch.utils.data import DataLoader
from torchvision import models


class Off(nn.Module):
    """All of it is frozen in the constructor."""

    def __init__(self, width=512, trainable=False):
        super().__init__()
        self.trainable = trainable
        self.net = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3))
        self.scale = nn.Parameter(torch.ones(1), requires_grad=trainable)
        for parameter in self.parameters():
            parameter.requires_grad_(False)

    def forward(self, x):
        return self.net(x) * self.scale


class ByArgument(nn.Module):
    def __init__(self, frozen=True, learned=False):
        super().__init__()
        self.net = models.resnet50()
        self.learned = learned
        for name, parameter in self.named_parameters():
            parameter.requires_grad = not frozen
        self.bias = nn.Parameter(torch.zeros(10))
        self.bias.requires_grad_(self.learned)

    def thaw(self):
        for parameter in self.parameters():
            parameter.requires_grad_(True)

    def forward(self, x):
        return self.net(x)


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(1000, 512))

    def forward(self, x):
        return x.flatten(1) @ self.table


class Derived(BaseNetwork):
    def forward(self, x):
        return self.compute(x)


class Abstract(nn.Module):
    def encode(self, x):
        raise NotImplementedError("subclasses do that")

    def forward(self, x):
        return self.encode(x)


class Wrapping(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Off(width=64)
        self.inner.eval()
        self.last = nn.Linear(64, 10)

    def forward(self, x):
        return self.last(self.inner(x).mean((2, 3)))


class Thawed:
    def __init__(self, net):
        self.net = net

    def __enter__(self):
        self.net.requires_grad_(True)

    def __exit__(self, *args):
        self.net.requires_grad_(False)


class Assigned:
    def __init__(self, net):
        self.net = net

    def __enter__(self):
        for parameter in self.net.parameters():
            parameter.requires_grad = True

    def __exit__(self, *args):
        for parameter in self.net.parameters():
            parameter.requires_grad = False


def frozen(net):
    for parameter in net.parameters():
        parameter.requires_grad = False
    return net


def lists(net):
    [parameter.requires_grad_(False) for parameter in net.parameters()]
    return net.eval()


def evaluate(net, loader):
    net.cuda().eval()
    right = 0
    for x, y in loader:
        right += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()  # expect: GPU201
    return right


def evaluate_off(loader):
    net = Off().cuda().eval()
    for x, y in loader:
        print(net(x.cuda()).mean().item())
    other = ByArgument().cuda().eval()
    for x, y in loader:
        print(other(x.cuda()).mean().item())  # maybe: GPU201
    learned = ByArgument(frozen=False).cuda().eval()
    for x, y in loader:
        print(learned(x.cuda()).mean().item())  # maybe: GPU201
    table = Buffers().cuda().eval()
    for x, y in loader:
        print(table(x.cuda()).mean().item())  # maybe: GPU201


def evaluate_made(loader, args):
    net = build_network(args).cuda().eval()
    for x, y in loader:
        print(net(x.cuda()).mean().item())  # maybe: GPU201
    made = frozen(models.resnet18()).cuda()
    for x, y in loader:
        print(made(x.cuda()).mean().item())
    given = models.resnet18().cuda().eval()
    prepare(given)
    for x, y in loader:
        print(given(x.cuda()).mean().item())  # maybe: GPU201
    helped = models.resnet18().cuda().eval()
    lists(helped)
    for x, y in loader:
        print(helped(x.cuda()).mean().item())  # maybe: GPU201
    derived = Derived().cuda().eval()
    for x, y in loader:
        print(derived(x.cuda()).mean().item())  # maybe: GPU201
    wrapping = Wrapping().cuda().eval()
    for x, y in loader:
        print(wrapping(x.cuda()).mean().item())  # maybe: GPU201
    table = nn.Embedding(1000, 512).cuda().eval()
    for x, y in loader:
        print(table(x.cuda()).mean().item())  # maybe: GPU201
    abstract = Abstract().cuda().eval()
    for x, y in loader:
        print(abstract(x.cuda()).mean().item())  # maybe: GPU201


class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.teacher = self.make()
        self.value = frozen(nn.Linear(512, 1).cuda())
        self.critic = models.resnet18().cuda()
        self.student = models.resnet18().cuda()
        self.optimizer = torch.optim.Adam(self.student.parameters())
        self.freeze(self.critic)

    def make(self):
        net = models.resnet50(pretrained=True).cuda()
        net.requires_grad_(False)
        return net.eval()

    def freeze(self, net, flag=False):
        for parameter in net.parameters():
            parameter.requires_grad = flag

    def step(self, x, y):
        with Thawed(self.value):
            loss = self.value(self.student(x)).mean()
        with Assigned(self.critic):
            extra = self.critic(x)
            loss = loss + extra.mean()
        wanted = self.teacher(x)
        loss = loss + F.mse_loss(self.student(x), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def validate(self):
        self.student.eval()
        for x, y in self.loader:
            print(F.cross_entropy(self.student(x.cuda()), y.cuda()).item())  # expect: GPU201
            print(self.critic(x.cuda()).mean().item())
        self.student.train()


def main(args):
    loader = DataLoader([0] * 1000, batch_size=32)
    evaluate(models.resnet18(), loader)
    evaluate_off(loader)
    evaluate_made(loader, args)
    trainer = Trainer(loader)
    for x, y in loader:
        trainer.step(x.cuda(), y.cuda())
    trainer.validate()
