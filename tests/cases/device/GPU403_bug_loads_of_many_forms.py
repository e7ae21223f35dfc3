"""Checkpoints that are loaded: onto which device, what is taken of them, how long they stay."""

import argparse
import logging
import os
from collections import OrderedDict

import torch
import torch.nn as nn
from huggingface_hub import hf_hub_download
from torchvision import models

log = logging.getLogger(__name__)
use_cuda = torch.cuda.is_available()
device = torch.device("cuda" if use_cuda else "cpu")
location = None if use_cuda else "cpu"
if torch.cuda.is_available():
    map_location = None
else:
    map_location = "cpu"


def by_location(path, loader):
    model = models.resnet152().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load(path, map_location=location)  # maybe: GPU403
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    start = checkpoint["epoch"]
    for epoch in range(start, 10):
        for x, y in loader:
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
    return checkpoint["best"] if "best" in checkpoint else None


def by_module(path, loader):
    model = models.resnet152().to(device)
    checkpoint = torch.load(path, map_location=map_location)  # maybe: GPU403
    model.load_state_dict(checkpoint, strict=False)
    for x, y in loader:
        nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()


def by_branch(path, net, loader):
    where = None
    if not torch.cuda.is_available():  # expect: GPU403@a
        where = "cpu"
    checkpoint = torch.load(path, map_location=where)  # expect: GPU403@a
    weights = checkpoint.get("state_dict", checkpoint)
    new_weights = OrderedDict()
    for key, value in list(weights.items()):
        new_weights[key.replace("module.", "")] = value
    net.load_state_dict(new_weights)
    net.to(device)
    for x, y in loader:
        nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
    del checkpoint


def by_lambda(path, net):
    state = torch.load(path, map_location=lambda storage, loc: storage)
    other = torch.load(path, map_location={"cuda:1": "cuda:0"})  # maybe: GPU403
    third = torch.load(path, map_location=f"cuda:{net.rank}")  # maybe: GPU403
    net.load_state_dict(state["model"])
    net.extra.load_state_dict(other["extra"])
    net.head.load_state_dict({k: v for k, v in third["head"].items() if k in net.head.state_dict()})


def restored_twice(path, net, optimizer, loader):
    net.cuda()
    net.load_state_dict(torch.load(path)["model"])  # maybe: GPU403
    optimizer.load_state_dict(torch.load(path)["optimizer"])  # maybe: GPU403
    for x, y in loader:
        nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()


def whole_model(path, loader):
    model = torch.load(path)
    model.eval()
    checkpoint = torch.load(path)
    trained = checkpoint["model"]
    with torch.no_grad():
        for x in loader:
            print(trained(x.cuda()).argmax(1), model(x.cuda()).argmax(1))
    return model


def published(loader):
    path = hf_hub_download("someone/model", "model.pt")
    net = models.vit_b_16().cuda()
    net.load_state_dict(torch.load(path)["model"])  # maybe: GPU403
    here = os.path.join(os.path.dirname(__file__), "prior.pt")
    prior = torch.load(here)
    with torch.no_grad():
        return [(net(x.cuda()) + prior["scale"]).cpu() for x in loader]


def converted(path, loader):
    os.makedirs("out", exist_ok=True)
    convert(path, output="out/converted.pt")
    log.info("converted.pt")
    target = "out/converted.pt"
    write_weights(target)
    state = torch.load(target)
    net = models.vgg19().cuda()
    net.load_state_dict(state)
    for x, y in loader:
        nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()


def convert(path, output):
    torch.save({"model": torch.load(path, map_location="cpu")}, output)


def write_weights(path):
    torch.save(models.vgg19().state_dict(), path)


class Trainer:
    def __init__(self, args, net, optimizer):
        self.net = net.to(device)
        self.optimizer = optimizer
        self.state = {}
        self.start = 0
        if args.resume:
            self.resume(args.resume)
        if args.gpu is None:
            checkpoint = torch.load(args.path)  # maybe: GPU403
        else:
            checkpoint = torch.load(args.path, map_location="cpu")
        self.net.load_state_dict(checkpoint)

    def resume(self, path):
        assert os.path.isfile(path)
        state = torch.load(path)  # maybe: GPU403
        self.start = state["epoch"] + 1
        self.best = state.get("best", 0)
        self.args = state["args"]
        self.net.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name, value in state.items():
            if name.startswith("ema"):
                setattr(self, name, value)

    def restore_all(self, path):
        state = torch.load(path, map_location=device)
        self.__dict__.update(state)
        vars(self).update(torch.load(path))
        self.prior = torch.load(path)["prior"]
        self.scale = state.pop("scale")

    def save(self, path):
        torch.save({"model": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.start}, path)

    def fit(self, loader):
        for x, y in loader:
            nn.functional.cross_entropy(self.net(x.to(device)), y.to(device)).backward()
            self.optimizer.step()


def distributed(path, rank, net):
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(rank)
    net = nn.parallel.DistributedDataParallel(net.cuda(), device_ids=[rank])
    checkpoint = torch.load(path)  # expect: GPU403
    net.module.load_state_dict(checkpoint["model"])
    return net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    parser.add_argument("--path", default="a.pt")
    parser.add_argument("--gpu", default=None, type=int)
    args = parser.parse_args()
    net = models.resnet152()
    loader = torch.utils.data.DataLoader([0] * 10)
    trainer = Trainer(args, net, torch.optim.Adam(net.parameters()))
    trainer.fit(loader)
    for step in (by_location, by_module):
        step(args.path, loader)
    by_branch(args.path, net, loader)
    by_lambda(args.path, net)
    restored_twice(args.path, net, trainer.optimizer, loader)
    whole_model(args.path, loader)
    published(loader)
    converted(args.path, loader)


if __name__ == "__main__":
    main()
