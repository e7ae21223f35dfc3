"""A loader hands on what its callers give it in stars, through another one: all of them say that it goes to the host."""
# file: restore.py
import torch

TO_HOST = {"map_location": "cpu", "weights_only": True}


def fetch(path, **how):
    return torch.load(path, **how)


def fetch_checked(path, **how):
    print(path)
    return fetch(path, **how)
# file: resume.py
import torch
from torchvision.models import resnet50

from restore import TO_HOST, fetch, fetch_checked


def resume(loader):
    torch.distributed.init_process_group("nccl")
    net = torch.nn.parallel.DistributedDataParallel(resnet50().cuda())
    opt = torch.optim.Adam(net.parameters())
    state = fetch("run.pt", map_location="cpu")
    net.load_state_dict(state["net"])
    opt.load_state_dict(state["opt"])
    state = fetch_checked("best.pt", map_location=torch.device("cpu"))
    net.load_state_dict(state["net"])
    state = torch.load("first.pt", **TO_HOST)
    net.load_state_dict(state["net"])
    opt.load_state_dict(state["opt"])
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, "run.pt")
