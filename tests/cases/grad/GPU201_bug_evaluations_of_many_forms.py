"""Evaluations, predictions and helpers around them: who switches grad off, for whom, and who reads the results."""
# file: models.py
import contextlib
import functools
from abc import ABC, abstractmethod

import torch
import torch.nn as nn
import torch.nn.functional as F


class Base(nn.Module, ABC):
    @abstractmethod
    def encode(self, x):
        raise NotImplementedError

    @torch.no_grad()
    def embed(self, x):
        return self.encode(x)

    def score(self, x):
        with torch.no_grad():
            return self.encode(x).norm(dim=-1)


class Encoder(Base):
    def __init__(self, width=512, frozen=True, depth=8):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3)
        self.layers = nn.Sequential(*[nn.Conv2d(64, 64, 3) for _ in range(depth)])
        self.head = nn.Linear(width, width)
        self.mean = nn.Parameter(torch.zeros(1), requires_grad=False)
        if frozen:
            for p in self.stem.parameters():
                p.requires_grad = False
        self.freeze(self.layers)

    @staticmethod
    def freeze(part, flag=False):
        part.requires_grad_(flag)
        return part.eval()

    def encode(self, x):
        return self.head(self.layers(self.stem(x - self.mean)).flatten(1))

    def forward(self, x, train=True):
        with torch.set_grad_enabled(train):
            features = self.stem(x)
        return self.encode(x) if train else self.embed(x), features

    def generate(self, x, steps=10):
        for _ in range(steps):
            x = torch.cat([x, self.encode(x).argmax(-1, keepdim=True)], dim=1)  # note: GPU201
        return x


class Frozen(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        for name, parameter in self.net.named_parameters():
            parameter.requires_grad_(False)

    def train(self, mode=True):
        return super().train(False)

    def forward(self, x):
        return self.net(x)


class Perceptual(nn.Module):
    def __init__(self):
        super().__init__()
        self.vgg = Frozen(nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 512, 3)))
        self.register_buffer("weights", torch.ones(3))

    def forward(self, x, y):
        target = self.vgg(y).detach()
        return F.l1_loss(self.vgg(x), target)


@contextlib.contextmanager
def evaluating(model):
    was = model.training
    model.eval()
    with torch.no_grad():
        yield model
    model.train(was)


class no_training:
    def __init__(self, *models):
        self.models = models

    def __enter__(self):
        self.before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    def __exit__(self, *args):
        torch.set_grad_enabled(self.before)


def inference(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with torch.inference_mode():
            return function(*args, **kwargs)

    return wrapped


# file: evaluate.py
import argparse
import csv
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import models as zoo

from models import Encoder, Frozen, Perceptual, evaluating, inference, no_training

device = "cuda:0" if torch.cuda.is_available() else "cpu"


def plain(model, loader):
    model.eval()
    right = seen = 0
    for x, y in loader:
        logits, _ = model(x.to(device))  # expect: GPU201
        right += (logits.argmax(1) == y.to(device)).sum().item()
        seen += len(x)
    return right / seen


def guarded_by_context(model, loader):
    total = 0.0
    with evaluating(model):
        for x, y in loader:
            total += F.cross_entropy(model(x.to(device))[0], y.to(device)).item()
    with no_training(model):
        for x, y in loader:
            total += model.encode(x.to(device)).sum().item()
    return total


@inference
def guarded_by_decorator(model, loader):
    return [model(x.to(device))[0].cpu() for x, _ in loader]


def guarded_by_callee(model, loader):
    found = []
    for x, _ in loader:
        found.append(model.embed(x.to(device)).cpu().numpy())
        found.append(model.score(x.to(device)).cpu().numpy())
        found.append(model(x.to(device), train=False)[0].cpu().numpy())
    return np.concatenate(found)


def by_flag(model, loader, phase="val"):
    for x, y in loader:
        with torch.set_grad_enabled(phase == "train"):
            logits, _ = model(x.to(device))  # maybe: GPU401
            loss = F.cross_entropy(logits, y.to(device))
            if phase == "train":
                loss.backward()
        print(phase, loss.item())


def features(model, paths, out="features.csv"):
    writer = csv.writer(open(out, "w"))
    model = model.to(device).eval()
    for path in paths:
        picture = torch.load(path).unsqueeze(0).to(device)
        feature = model.encode(picture)  # note: GPU201
        writer.writerow([path, *feature.squeeze(0).cpu().detach().numpy().tolist()])
        hidden = model.generate(picture)  # maybe: GPU201
        np.save(os.path.basename(path), hidden.data.cpu().numpy())


def compare(teacher, student, loader, optimizer, criterion):
    teacher.eval()
    perceptual = Perceptual().to(device)
    frozen = Frozen(zoo.resnet18(pretrained=True)).to(device)
    for p in teacher.parameters():
        p.requires_grad = False
    for x, y in loader:
        x = x.to(device)
        wanted = teacher(x)[0]
        given, inner = student(x)  # expect: GPU202
        known = frozen(x)
        loss = F.mse_loss(given, wanted) + perceptual(x, x + inner.mean()) + known.mean() + criterion(given, y)  # maybe: GPU401
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def samples(generator, loader, step=0):
    fixed = torch.randn(64, 100, device=device)
    for real, _ in loader:
        fake = generator(fixed)
        loss = (fake - real.to(device)).pow(2).mean()  # maybe: GPU401
        loss.backward()
        if step % 500 == 0:
            shown = generator(fixed)  # maybe: GPU201
            save_image(shown.detach().cpu(), f"{step}.png")
        step += 1


def save_image(picture, path):
    np.save(path, picture.numpy())


def attack(model, x, y, epsilon=0.1):
    model.eval()
    x = x.clone().to(device).requires_grad_(True)
    loss = F.cross_entropy(model(x)[0], y.to(device))
    grad = torch.autograd.grad(loss, x)[0]
    return (x + epsilon * grad.sign()).detach()


def robust_accuracy(model, loader):
    right = 0
    for x, y in loader:
        moved = attack(model, x, y)
        with torch.no_grad():
            right += (model(moved)[0].argmax(1) == y.to(device)).sum().item()
    return right


def ensemble(paths, loader):
    nets = []
    for path in paths:
        net = Encoder(frozen=False)
        net.load_state_dict(torch.load(path, map_location="cpu"))
        net.to(device)
        net.eval()
        nets.append(net)
    answers = []
    for x, _ in loader:
        outs = [net(x.to(device))[0].softmax(-1) for net in nets]  # maybe: GPU201
        answers.append(torch.stack(outs).mean(0).argmax(-1).cpu())
    return torch.cat(answers)


class Evaluator:
    metrics = ("top1", "top5")

    def __init__(self, model, loader, hooks=None):
        self.model = model.to(device)
        self.loader = loader
        self.results = {}
        self.hooks = hooks or []
        torch.set_grad_enabled(False)

    def run(self):
        self.model.eval()
        outputs = []
        for x, y in self.loader:
            out = self.predict(x)
            outputs.append(out)  # maybe: GPU102
            for hook in self.hooks:
                hook(out, y)
        self.results["all"] = torch.cat(outputs).cpu()
        return self.results

    def predict(self, x):
        return self.model(x.to(device))[0]


class Validator:
    def __init__(self, model, val_loader):
        self.net = model
        self.val_loader = val_loader

    def __call__(self, epoch):
        self.net.train(mode=False)
        losses = []
        for step, (x, y) in enumerate(self.val_loader):
            logits = self.net(x.cuda())[0]  # maybe: GPU201
            losses.append(F.cross_entropy(logits, y.cuda()).item())
            if step > 50:
                break
        self.net.train()
        return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval", action="store_true")
    args = parser.parse_args()
    model = Encoder().to(device)
    loader = DataLoader([0] * 10_000, batch_size=64)
    if args.eval:
        print(plain(model, loader), guarded_by_context(model, loader), Validator(model, loader)(0))
        return
    guarded_by_decorator(model, loader)
    guarded_by_callee(model, loader)
    for phase in ("train", "val"):
        by_flag(model, loader, phase)
    features(model, os.listdir("pictures"))
    compare(model, Encoder().to(device), loader, torch.optim.Adam(model.parameters()), F.mse_loss)
    samples(model, loader)
    print(robust_accuracy(model, loader), ensemble(["a.pt", "b.pt"], loader))
    Evaluator(model, loader).run()


if __name__ == "__main__":
    main()
