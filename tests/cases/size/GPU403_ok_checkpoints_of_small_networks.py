"""Checkpoints of networks with few weights, whose making is spread over helpers, tables and settings."""

import sys

import timm
import torch
import torchvision
from torch import nn


CONFIG = {"stem": 8, "stages": (8, 16), "name": "tiny"}
CFG = {"A": [8, "M", 16, "M"], "B": [8, 8, "M"]}


def conv(given, made, size=3, bias=True, **more):
    if bias and given == made:
        return nn.Conv2d(given, made, size, padding=size // 2)
    elif not bias:
        return nn.Conv2d(given, made, size, padding=size // 2, bias=False, **more)
    layer = nn.Conv2d(given, made, size)
    return layer


def features(plan, batch_norm=False):
    layers, given = [], 3
    for step in plan:
        if step == "M":
            layers += [nn.MaxPool2d(2)]
        else:
            made = conv(given, step)
            layers += [made, nn.BatchNorm2d(step), nn.ReLU()] if batch_norm else [made, nn.ReLU(inplace=True)]
            given = step
    return nn.Sequential(*layers)


class Vgg(nn.Module):
    def __init__(self, plan="A", classes=10):
        super(Vgg, self).__init__()
        self.features = features(CFG[plan], batch_norm=True)
        self.hidden = CFG[plan][-2] if CFG[plan][-1] == "M" else CFG[plan][-1]
        self.head = nn.Linear(16, classes)
        stages = list()
        for stage in CONFIG["stages"]:
            stages.append(conv(stage, stage, bias=stage > 4 and True))
        self.stages = nn.ModuleList(stages)
        self.tail = nn.ModuleList([conv(8, 8) for _ in range(2)] + [nn.Identity()])
        self.scale = {"x": 1, "y": 2}.get("x", 1)
        self.embed = nn.Embedding(100, 8)
        self.gru = nn.GRUCell(8, 8)
        self.attend = nn.MultiheadAttention(8, 2)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Outer(nn.Module):
    def __init__(self, inner, head=None):
        super().__init__()
        self.inner = inner
        self.head = head or nn.Linear(10, 2)
        self.norm = nn.LayerNorm(10) if not head else None

    def forward(self, x):
        return self.head(self.inner(x))


def build(name="vgg", wrap=True, depth=2):
    model = Vgg("B", classes=10) if name == "vgg" else Vgg()
    if depth > 5:
        raise ValueError(name)
    for _ in range(depth):
        model = model
    if wrap:
        model = Outer(model)
    return model


def make(kind):
    if kind == "a":
        net = Vgg(plan="A")
    elif kind == "b":
        net = build()
    else:
        net = build(wrap=False, depth=1)
    return net


def resume_first(path, loader):
    model = build().cuda()
    model.load_state_dict(torch.load(path))
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()


def resume_second(path, kind, loader):
    model = make(kind).cuda()
    state = torch.load(path, map_location="cuda")  # maybe: GPU403
    model.load_state_dict(state["model"])
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
    return state["epoch"]


def resume_linear(path, loader):
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
    checkpoint = torch.load(path)  # maybe: GPU403
    model.load_state_dict(checkpoint)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()


def resume_known(path, loader):
    model = timm.create_model("mobilenetv3_small_100", pretrained=False).cuda()
    checkpoint = torch.load(path)  # maybe: GPU403
    model.load_state_dict(checkpoint["state_dict"])
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()


if __name__ == "__main__":
    data = torch.utils.data.DataLoader(torchvision.datasets.CIFAR10("data"), batch_size=128)
    resume_first(sys.argv[1], data)
    resume_second(sys.argv[1], "a", data)
    resume_linear(sys.argv[1], data)
    resume_known(sys.argv[1], data)
