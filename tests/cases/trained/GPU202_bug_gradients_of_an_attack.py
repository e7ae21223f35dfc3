"""Gradients of weights that an attack makes beside that of its picture, and that are cleared before anybody steps with them, or never used."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torchvision.models import resnet18, resnet50


def attacked(net, x, y):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(10):
        loss = F.cross_entropy(net(x + delta), y)  # expect: GPU202
        loss.backward()
        delta.data = (delta + 0.01 * delta.grad.sign()).clamp(-0.03, 0.03)
        delta.grad.zero_()
    return (x + delta).detach()


def hardened(loader):
    net = resnet50().cuda()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(90):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            loss = F.cross_entropy(net(attacked(net, x, y)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            shown = attacked(net, x, y)
            with torch.no_grad():
                print((net(shown).argmax(1) == y).sum().item())


def on_noise_that_stays(loader, epochs):
    net = resnet18(num_classes=10).cuda()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    noise = torch.zeros(256, 3, 224, 224, device="cuda")
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            own = torch.autograd.Variable(noise[: len(x)], requires_grad=True)
            shown = (x + own).clamp(0, 1)
            F.cross_entropy(net(shown), y).backward()  # expect: GPU202
            noise[: len(x)] += 0.01 * torch.sign(own.grad)
            loss = F.cross_entropy(net((x + noise[: len(x)]).clamp_(0, 1)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def with_grad_on(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        shown = x.detach().clone().requires_grad_(True)
        for _ in range(20):
            with torch.enable_grad():
                loss = F.cross_entropy(net(shown), y)  # expect: GPU202
            loss.backward()
            shown = (shown.detach() + 0.003 * shown.grad.sign()).requires_grad_(True)
        yield shown.detach()


def away_from_the_clean(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    apart = nn.KLDivLoss(reduction="sum")
    for x, _ in loader:
        x = x.cuda()
        shown = x.detach() + 0.001 * torch.randn_like(x)
        for _ in range(10):
            shown.requires_grad_()
            with torch.enable_grad():
                loss = apart(F.log_softmax(net(shown), 1), F.softmax(net(x), 1))  # low: GPU202
            step = torch.autograd.grad(loss, [shown])[0]
            shown = shown.detach() + 0.003 * torch.sign(step)
        yield shown


def fitted(target):
    net = resnet50(weights="DEFAULT").cuda().eval()
    latent = torch.zeros(1, 3, 224, 224, device="cuda", requires_grad=True)
    optimizer = optim.Adam([latent], lr=0.01)
    for step in range(1000):
        loss = F.mse_loss(net(latent), target)  # expect: GPU202
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return latent
