"""Small networks, each written in another way: layers in tables, products of lists, tested settings, shared builders."""

import argparse
import copy
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

WIDTHS = [16, 32, 32]
CHOICES = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}
parser = argparse.ArgumentParser()
parser.add_argument("--hidden-size", "-H", type=int, default=48)
parser.add_argument("--depth", dest="n_layers", default=2)
parser.add_argument("--act", default="relu")
parser.add_argument("--dropout", default=None)
parser.add_argument("-w", default=8)
parser.add_argument("--seed", default=1)
parser.add_argument("--seed2", dest="seed", default=2)
args = parser.parse_args()


class Pairs(nn.Module):
    def __init__(self, dims=(16, 24, 24), skip=True, act="relu"):
        super().__init__()
        inner = []
        for number, (given, made) in enumerate(zip(dims[:-1], dims[1:])):
            inner.append(nn.Linear(given, made))
            if number < len(dims) - 2 and not skip is None:
                inner.extend([CHOICES[act](), nn.Dropout(0.1)])
        first, *_ = dims
        self.body = nn.Sequential(*inner)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in reversed(dims))
        self.skip = nn.Linear(first, dims[-1]) if skip else nn.Identity()
        self.head = nn.Bilinear(8, 8, 4)

    def forward(self, x):
        return self.head(self.body(x)[:, :8], self.skip(x)[:, :8])


class Encoder(nn.Module):
    def __init__(self, width, layers=None, pooled=False):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 2, dim_feedforward=32)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(d_model=width, nhead=2, dim_feedforward=32), num_layers=1)
        self.again = copy.deepcopy(layer)
        self.pool = getattr(nn, "Linear")(width, width) if pooled or layers is None else None
        act = getattr(F, "relu")
        self.act = act

    def forward(self, x, memory):
        return self.decoder(self.again(self.encoder(x)), memory)


class Sized(nn.Module):
    sizes = {"s": [16, 16], "m": [32, 32]}

    @classmethod
    def small(cls, **kwargs):
        return cls(cls.sizes["s"], **kwargs)

    @staticmethod
    def block(given, made, *more, act=nn.ReLU):
        return nn.Sequential(nn.Linear(given, made), act(), *more)

    def __init__(self, widths, classes=10, extra=()):
        super().__init__()
        self.classes = classes
        self.build(*widths, last=classes)
        for name, layer in {"a": nn.Tanh(), "b": nn.Sigmoid()}.items():
            self.add_module(name, layer)
        self.extra = nn.ModuleDict({"proj": nn.Linear(4, 4)})
        while len(self.extra) < 1:
            self.extra["more"] = nn.Identity()

    def build(self, first, second, last):
        self.first = self.block(first, second, nn.Dropout(0.2), act=partial(nn.LeakyReLU, 0.1))
        self.last = Sized.block(second, last)

    def forward(self, x):
        return self.last(self.first(x))


class Wider(Sized):
    def __init__(self, *sizes, **options):
        super().__init__(list(sizes), **options)
        self.top = nn.Linear(args.hidden_size, args.w) if args.n_layers >= 2 and args.act == "relu" else nn.Linear(9, 9)


def mlp(dims, act=nn.ReLU, seed=None):
    layers = []
    for position in range(len(dims) - 1):
        if seed is not None and position == seed:
            return nn.Sequential(*layers)
        layers.append(nn.Linear(dims[position], dims[position + 1]))
        layers.append(act())
    return nn.Sequential(*layers[:-1]) if False else nn.Sequential(*layers)


def resume_encoder_of_args(path, loader):
    net = Encoder(width=args.hidden_size).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    checkpoint = torch.load(path)  # maybe: GPU403
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()


def resume_sized(path, loader):
    net = Sized.small(classes=4).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    checkpoint = torch.load(path)  # maybe: GPU403
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()


def resume_wider(path, loader):
    net = Wider(16, 16, classes=3).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    checkpoint = torch.load(path)  # maybe: GPU403
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()


def resume_rows(path, loader):
    net = mlp(dims=[*WIDTHS, 4], seed=args.seed).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    checkpoint = torch.load(path)  # maybe: GPU403
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()


def resume_wrapped(path, loader):
    net = nn.DataParallel(Pairs(dims=[8] * 3, act=args.act)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    checkpoint = torch.load(path)  # maybe: GPU403
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
