"""Grad modes: entered, called, decorated, forgotten, dropped; parameters thawed and frozen; gradients kept and cut."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import no_grad
from torch.utils.data import DataLoader
from torchvision import models


def forgotten(model, loader):
    model.cuda().eval()
    torch.no_grad()  # expect: GPU204
    for x, y in loader:
        print(model(x.cuda()).sum().item())  # maybe: GPU201


def dropped(model, loader):
    with torch.inference_mode and model.eval():  # maybe: GPU204
        for x, y in loader:
            print(model(x.cuda()).sum().item())  # maybe: GPU201


def entered(model, loader):
    guard = torch.no_grad()
    guard.__enter__()
    for x, y in loader:
        print(model(x.cuda()).sum().item())
    guard.__exit__(None, None, None)
    torch.set_grad_enabled(False)
    for x, y in loader:
        print(model(x.cuda()).mean().item())
    torch.set_grad_enabled(True)
    previous = torch.is_grad_enabled()
    with torch.autograd.grad_mode.set_grad_enabled(mode=False), torch.autocast("cuda"):
        print(model(x.cuda()).max().item())
    torch._C._set_grad_enabled(previous)


@torch.no_grad()
def streamed(model, loader):
    for x in loader:
        yield model(x.cuda()).cpu()


@torch.no_grad
def without_brackets(model, x):
    return model(x.cuda())


@torch.set_grad_enabled(False)
def switched(model, x):
    return model(x.cuda())


@torch.enable_grad()
def enabled(model, x):
    return torch.autograd.grad(model(x.cuda()).sum(), x)


def only_eval(model, loader):
    model.cuda().eval()
    with no_grad():
        before = torch.zeros(1)
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda()).item()  # maybe: GPU201
    return loss, before


class Head(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        self.backbone = models.resnet50(weights="DEFAULT")
        self.frozen = frozen
        self.backbone.fc = nn.Identity()
        for parameter in self.backbone.parameters():
            parameter.requires_grad = not frozen
        self.backbone.layer4.requires_grad_(True)
        self.head = nn.Linear(2048, 10)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.set_grad_enabled(not self.frozen):
            features = self.backbone(x)
        return self.head(features)

    def unfreeze(self):
        self.frozen = False
        for parameter in self.backbone.parameters():
            parameter.requires_grad = True


class Backbone(nn.Module):
    def __init__(self, requires_grad=False):
        super().__init__()
        features = models.vgg19(pretrained=True).features
        self.slice1 = nn.Sequential(*[features[i] for i in range(4)])
        self.slice2 = nn.Sequential()
        for i in range(4, 9):
            self.slice2.add_module(str(i), features[i])
        if not requires_grad:
            for parameter in self.parameters():
                parameter.requires_grad = False

    def forward(self, x):
        first = self.slice1(x)
        return [first, self.slice2(first)]


def finetune(loader, epochs):
    model = Head(frozen=True).cuda()
    loss_net = Backbone().cuda()
    clip = models.vit_b_16(weights="DEFAULT").cuda()
    clip.requires_grad_(False)
    encoder = freeze(models.resnet34().cuda())
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    for epoch in range(epochs):
        if epoch == 5:
            model.unfreeze()
            optimizer.add_param_group({"params": model.backbone.parameters()})
        for x, y in loader:
            x = x.cuda()
            hidden = clip(x)
            code = encoder(x).detach()
            given = loss_net(x)[0].mean()
            with torch.no_grad():
                base = model.backbone(x)
            loss = F.cross_entropy(model(x), y.cuda()) + hidden.mean() + code.mean() + given + base.mean()
            optimizer.zero_grad()
            loss.backward()
            for name, parameter in model.named_parameters():
                if parameter.grad is None:
                    continue
                parameter.grad.data.clamp_(-1, 1)
            optimizer.step()


def freeze(model):
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model


def inversion(model, target, steps=500):
    latent = torch.zeros(1, 512, device="cuda", requires_grad=True)
    noise = [torch.randn(1, 1, n, n, device="cuda") for n in (4, 8)]
    for one in noise:
        one.requires_grad = True
    model.eval()
    optimizer = torch.optim.Adam([latent] + noise, lr=0.01)
    history = []
    for step in range(steps):
        image = model(latent, noise)
        loss = F.mse_loss(image, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step % 100 == 0:
            history.append(image.detach().cpu())
    return latent.detach(), history


def saliency(model, loader):
    model.cuda().eval()
    maps = []
    for x, y in loader:
        x = x.cuda()
        x.requires_grad_()
        score = model(x).max(1)[0].sum()  # low: GPU202
        score.backward()
        maps.append(x.grad.abs().amax(1).cpu())
    return maps


def zeroing(model, loader, optimizer):
    for step, (x, y) in enumerate(loader):
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        model.zero_grad(set_to_none=step % 2 == 0)
        del x
    for parameter in model.parameters():
        parameter.grad = None
        parameter.grad_copy = None


def export(model, path):
    model.eval()
    example = torch.zeros(1, 3, 224, 224).cuda()
    out = model(example)
    traced = torch.jit.trace(model, example)
    torch.onnx.export(model, example, path)
    return traced(example).shape == out.shape


def run(rank=int(os.environ.get("RANK", 0))):
    loader = DataLoader([0] * 100)
    model = models.resnet18()
    for function in (forgotten, dropped, entered, only_eval, zeroing):
        function(model, loader)
    for out in streamed(model, loader):
        print(out.mean())
    print(without_brackets(model, out), switched(model, out), enabled(model, out), saliency(model, loader))
    finetune(loader, 10)
    export(model, "a.onnx")
    return inversion(model, out)
