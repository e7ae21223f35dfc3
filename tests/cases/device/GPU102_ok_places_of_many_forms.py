"""On which device something is: by constants, arguments, settings, modules, moves and undone moves."""

import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--no-cuda", action="store_true")
parser.add_argument("--gpu", type=int, default=-1)
args = parser.parse_args()
use_cuda = not args.no_cuda and torch.cuda.is_available()
host = torch.device("cpu")
chosen = torch.device(args.device)
other = torch.device("cuda" if use_cuda else "cpu")
numbered = f"cuda:{args.gpu}" if args.gpu >= 0 else "cpu"
DTYPE = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor


class Small(nn.Module):
    def __init__(self, device=None):
        super().__init__()
        self.net = nn.Linear(64, 64)
        self.device = device or host
        self.to(self.device)

    def forward(self, x):
        return self.net(x.to(self.device))


def on_host(loader):
    net = Small()
    kept, table = [], {}
    with torch.no_grad():
        for number, (x, y) in enumerate(loader):
            kept.append(net(x))
            table[number] = net(x).softmax(-1)
    return torch.cat(kept), table


def by_text(loader):
    net = nn.Linear(64, 64).to("cpu")
    kept = []
    for x, y in loader:
        with torch.no_grad():
            kept.append(net(x.to(device="cpu")))
    return kept


def moved_back(loader):
    net = nn.Linear(64, 64).cuda()
    for x, y in loader:
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
    net.cpu()
    kept = []
    with torch.no_grad():
        for x, y in loader:
            kept.append(net(x))
    net = net.to(torch.device("cpu"))
    for x, y in loader:
        with torch.no_grad():
            kept.append(net(x))
    return kept


def by_arrays(loader):
    net = Small(host)
    arrays, rows = [], []
    for x, y in loader:
        x = torch.from_numpy(np.asarray(x)).float()
        with torch.no_grad():
            out = net(x)
        arrays.append(out.numpy())
        rows.append(out.data)
        rows.extend(out.tolist())
    return np.concatenate(arrays), rows


def made(count):
    kept = []
    for number in range(count):
        one = torch.zeros(1000, 1000)
        two = torch.ones(1000, device="cpu")
        three = torch.empty(1000).uniform_()
        four = torch.arange(10).float()
        kept += [one, two + three, four.clone(), torch.cat([one, one]), torch.tensor([number])]
        kept.append(torch.randn(8, 8).type(torch.FloatTensor))
        kept.append(one.new_zeros(3))
        kept.append(torch.load(f"{number}.pt", map_location="cpu"))
    return kept


def conditional(loader, device=None):
    net = nn.Linear(64, 64)
    if device is not None:
        net = net.to(device)
    if args.gpu > 100:
        net.cuda(args.gpu)
    kept = []
    with torch.no_grad():
        for x, y in loader:
            if args.gpu > 100:
                x = x.cuda()
            kept.append(net(x))
    return kept


class Holder:
    device = "cpu"

    def __init__(self, model, loader, device=host):
        self.model = model
        self.device = device
        self.model.to(device)
        self.loader = loader
        self.features = []
        self.targets = torch.zeros(0)

    def fill(self):
        for x, y in self.loader:
            with torch.no_grad():
                self.features.append(self.model(x.to(self.device)))
            self.targets = torch.cat([self.targets, y.float()])
        return torch.cat(self.features)

    def statistics(self):
        means = {}
        for name, parameter in self.model.named_parameters():
            means[name] = parameter.data.mean()
            means[name + ".norm"] = parameter.detach().norm().cpu()
        return means


def worker(rank, queue, path):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    net = Small()
    net.load_state_dict(torch.load(path, map_location=lambda storage, location: storage))
    results = []
    while not queue.empty():
        with torch.no_grad():
            results.append(net(queue.get()))
    return results


def states(net, loader):
    copies = [{name: value.clone().cpu() for name, value in net.state_dict().items()}]
    copies.append({name: value.cpu().clone() for name, value in net.state_dict().items()})
    copies.append({name: value.detach().to("cpu") for name, value in net.named_parameters()})
    history = []
    for x, y in loader:
        F.cross_entropy(net(x), y).backward()
        history.append({name: p.grad.cpu().clone() for name, p in net.named_parameters()})
        history.append([p.data.cpu() for p in net.parameters()])
    return copies, history


def main():
    loader = DataLoader([(torch.zeros(64), 0)] * 1000, batch_size=10)
    print(on_host(loader), by_text(loader), moved_back(loader), by_arrays(loader), made(10), conditional(loader))
    holder = Holder(Small(), loader)
    holder.fill()
    holder.statistics()
    states(Small(), loader)
    return chosen, other, numbered, DTYPE


if __name__ == "__main__":
    main()
