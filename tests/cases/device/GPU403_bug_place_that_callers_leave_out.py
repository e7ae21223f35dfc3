"""A loader hands on what its callers give it in stars, and none of them gives a place; of two who use another one, one gives it."""
# file: restore.py
import torch


def fetch(path, **how):
    return torch.load(path, **how)  # expect: GPU403


def fetch_for_some(path, **how):
    return torch.load(path, **how)  # low: GPU403
# file: resume.py
import torch
from torchvision.models import resnet50

from restore import fetch, fetch_for_some


def resume(loader):
    net = resnet50().cuda()
    opt = torch.optim.Adam(net.parameters())
    state = fetch("run.pt", weights_only=True)
    net.load_state_dict(state["net"])
    opt.load_state_dict(state["opt"])
    other = fetch_for_some("other.pt", map_location="cpu")
    net.load_state_dict(other["net"])
    opt.load_state_dict(other["opt"])
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, "run.pt")


def again(net, opt):
    other = fetch_for_some("other.pt")
    net.load_state_dict(other["net"])
    opt.load_state_dict(other["opt"])
