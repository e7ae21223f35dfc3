"""What is loaded stays through the training: that another branch, or a later one, binds the name anew, lets go of nothing here."""

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
        state = torch.load(args.resume)  # expect: GPU403
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
    if args.pretrained:
        state = torch.load(args.pretrained, map_location="cpu")
        net.load_state_dict(state["net"], strict=False)
    for epoch in range(args.epochs):
        train(net, opt, loader)
        torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, f"{epoch}.pt")


def other(args, loader):
    net = resnet152().cuda()
    opt = torch.optim.Adam(net.parameters())
    if args.averaged:
        state = torch.load(args.averaged)  # expect: GPU403
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
    else:
        state = torch.load(args.resume)  # expect: GPU403
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
    for epoch in range(args.epochs):
        train(net, opt, loader)
