"""Copies of weights while a network trains: the best so far, one of each epoch, a moving average, clients of a federation."""

import copy
from collections import OrderedDict
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import nn
from torchvision import models


def train_epoch(model, loader, optimizer, device):
    model.train()
    for x, y in loader:
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def accuracy(model, loader, device):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
    return right


def fit_by_clones(model, loader, val_loader, device=torch.device("cuda:0")):
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    least = None
    for _ in range(30):
        value = train_epoch(model, loader, optimizer, device)
        if least is None or value < least:
            least = value
            weights = {k: v.detach().clone() for k, v in model.state_dict().items()}  # low: GPU404
    model.load_state_dict(weights)
    return least


def fit_without_copy(model, loader, val_loader):
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = 0
    for _ in range(30):
        train_epoch(model, loader, optimizer, "cuda")
        score = accuracy(model, val_loader, "cuda")
        if score > best:
            best = score
            best_state = model.state_dict()  # expect: GPU404
    model.load_state_dict(best_state)


def all_epochs(model, loader, epochs):
    model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    states, names, rings = {}, [], {}
    for epoch in range(epochs):
        train_epoch(model, loader, optimizer, "cuda")
        states[epoch] = copy.deepcopy(model.state_dict())  # maybe: GPU404
        rings[epoch % 3] = copy.deepcopy(model.state_dict())  # maybe: GPU404
        names.append(f"epoch {epoch}")
    for epoch, state in states.items():
        torch.save(state, f"{epoch}.pt")
    print(list(states.keys()), names, len(rings))
    model.load_state_dict(states[0])


def average(model, loader, epochs):
    model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    weights, sums = [], OrderedDict()
    for epoch in range(epochs):
        train_epoch(model, loader, optimizer, "cuda")
        if epoch > epochs // 2:
            weights.append(copy.deepcopy(model.state_dict()))  # maybe: GPU404
    for key in weights[0]:
        sums[key] = torch.stack([one[key].float() for one in weights]).mean(0)
    model.load_state_dict(sums)


class Stopper:
    def __init__(self, patience=5, delta=0.0):
        self.patience, self.delta, self.count = patience, delta, 0
        self.lowest = None
        self.weights = None
        self.model = None

    def __call__(self, loss, model):
        if self.lowest is None or loss < self.lowest - self.delta:
            self.lowest = loss
            self.weights = copy.deepcopy(model.state_dict())  # maybe: GPU404
            self.model = copy.deepcopy(model)  # maybe: GPU404
            self.count = 0
        else:
            self.count += 1
        return self.count >= self.patience

    def restore(self, model):
        model.load_state_dict(self.weights)
        return self.model


class Federation:
    def __init__(self, model, loaders):
        self.model = model.cuda()
        self.loaders = loaders
        self.clients = [copy.deepcopy(self.model) for _ in loaders]
        self.old = copy.deepcopy(self.model)

    def round(self):
        states, locals_ = {}, []
        for number, (client, loader) in enumerate(zip(self.clients, self.loaders)):
            client.load_state_dict(self.model.state_dict())
            optimizer = torch.optim.SGD(client.parameters(), lr=0.1)
            train_epoch(client, loader, optimizer, "cuda")
            states[number] = copy.deepcopy(client.state_dict())
            locals_.append(copy.deepcopy(client.state_dict()))  # maybe: GPU404
        merged = {}
        for key in states[0].keys():
            merged[key] = sum(state[key] for state in states.values()) / len(states)
        self.model.load_state_dict(merged)

    def step_back(self):
        before = copy.deepcopy(self.model.state_dict())  # low: GPU404
        self.round()
        if accuracy(self.model, self.loaders[0], "cuda") < 10:
            self.model.load_state_dict(before)


class Ema:
    def __init__(self, model, decay=0.99):
        self.module = deepcopy(model).eval()
        self.decay = decay
        self.shadow = {}
        self.backup = {}
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                self.shadow[name] = parameter.data.clone()

    def update(self, model):
        with torch.no_grad():
            for mine, theirs in zip(self.module.state_dict().values(), model.state_dict().values()):
                mine.copy_(self.decay * mine + (1.0 - self.decay) * theirs)

    def apply(self, model):
        self.backup = {name: p.data.clone() for name, p in model.named_parameters()}
        model.load_state_dict(self.shadow, strict=False)

    def restore(self, model):
        for name, p in model.named_parameters():
            p.data = self.backup[name]
        self.backup = {}


def main(loader, val_loader):
    model = models.resnet50().cuda()
    stopper, ema = Stopper(), Ema(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        loss = train_epoch(model, loader, optimizer, "cuda")
        ema.update(model)
        ema.apply(model)
        if stopper(loss, model):
            break
        ema.restore(model)
    stopper.restore(model)
    networks = [nn.Linear(8, 8).cuda() for _ in range(3)]
    copies = [one.state_dict() for one in networks]
    copies.append(deepcopy(networks[0]).state_dict())
    federation = Federation(model, [loader, val_loader])
    federation.round()
    federation.step_back()
    return copies
