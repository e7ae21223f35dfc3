"""An auto-encoder whose widths are the command line's defaults, some hundred thousand weights, is filled and let go of."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=128)
parser.add_argument("--code-size", type=int, default=16)
parser.add_argument("--weights", default="")
args = parser.parse_args()


def build():
    layers = [nn.Linear(784, args.hidden), nn.ReLU(), nn.Linear(args.hidden, args.code_size)]
    layers += [nn.ReLU(), nn.Linear(args.code_size, args.hidden), nn.ReLU(), nn.Linear(args.hidden, 784)]
    return nn.Sequential(*layers)


def main(loader):
    net = build().cuda()
    if args.weights:
        net.load_state_dict(torch.load(args.weights))
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), x.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save(net.state_dict(), "net.pt")
