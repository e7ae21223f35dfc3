"""Whoever comes by the loading comes by what binds the name anew, or deletes it."""

import torch
import torch.nn.functional as F
from torchvision.models import resnet152


def train(net, opt, loader):
    for x, y in loader:
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


def main(args, loader):
    net = resnet152().cuda()
    opt = torch.optim.Adam(net.parameters())
    if args.resume:
        state = torch.load(args.resume)  # maybe: GPU403
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
        del state
    for epoch in range(args.epochs):
        train(net, opt, loader)
        torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, f"{epoch}.pt")


def other(args, loader):
    net = resnet152().cuda()
    opt = torch.optim.Adam(net.parameters())
    if args.resume:
        state = torch.load(args.resume)  # maybe: GPU403
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
    state = None
    for epoch in range(args.epochs):
        train(net, opt, loader)
