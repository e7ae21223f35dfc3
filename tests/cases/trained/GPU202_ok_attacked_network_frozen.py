"""Networks that a backward goes through to something else, and that are frozen, stepped, or left out of the backward."""

import torch
from torch import nn
from torchvision.models import resnet50


def frozen_once(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    for p in net.parameters():
        p.requires_grad = False
    patch = torch.rand(3, 224, 224, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([patch])
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda() + patch), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def frozen_in_the_chain(loader):
    net = resnet50(weights="DEFAULT").cuda().eval().requires_grad_(False)
    patch = torch.rand(3, 224, 224, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([patch])
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda() + patch), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def gradient_of_the_picture(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    for x, y in loader:
        x = x.cuda().requires_grad_()
        loss = nn.functional.cross_entropy(net(x), y.cuda())
        (grad,) = torch.autograd.grad(loss, x)
        print(grad.norm().item())


def only_these(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    patch = torch.rand(3, 224, 224, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([patch])
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda() + patch), y.cuda())
        optimizer.zero_grad()
        loss.backward(inputs=[patch])
        optimizer.step()


def trained_by_what_it_is_attacked_with(loader):
    net = resnet50(weights="DEFAULT").cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        x = x.cuda().requires_grad_()
        nn.functional.cross_entropy(net(x), y.cuda()).backward()
        harder = (x + 0.1 * x.grad.sign()).detach()
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(harder), y.cuda()).backward()
        optimizer.step()


def freeze(net):
    return net.requires_grad_(False)


def frozen_by_a_helper(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    freeze(net)
    patch = torch.rand(3, 224, 224, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([patch])
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda() + patch), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def both_are_stepped(generator, loader):
    judge = resnet50(weights="DEFAULT").cuda()
    first = torch.optim.Adam(generator.parameters())
    second = torch.optim.Adam(judge.parameters())
    for x, y in loader:
        loss = nn.functional.cross_entropy(judge(generator(x.cuda())), y.cuda())
        loss.backward()
        first.step()
        second.step()
