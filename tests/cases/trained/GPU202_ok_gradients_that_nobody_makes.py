"""Programs that ask for the gradient of what a network is given, and make none of its weights."""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import resnet50


def by_name(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    for x, y in loader:
        x = x.cuda().requires_grad_(True)
        (step,) = torch.autograd.grad(F.cross_entropy(net(x), y.cuda()), x)
        yield x + step.sign()


def by_its_inputs(loader):
    net = resnet50(weights="DEFAULT").cuda().eval()
    for x, y in loader:
        x = x.cuda().requires_grad_(True)
        F.cross_entropy(net(x), y.cuda()).backward(inputs=[x])
        yield x + x.grad.sign()


def frozen(loader):
    net = resnet50(weights="DEFAULT").cuda().eval().requires_grad_(False)
    for x, y in loader:
        x = x.cuda().requires_grad_(True)
        F.cross_entropy(net(x), y.cuda()).backward()
        yield x + x.grad.sign()


def made_of_what_is_asked_for(loader, net: nn.Module):
    net.cuda().eval()
    for x, _ in loader:
        shown = x.cuda().requires_grad_()
        both = net(shown) * net(shown.flip(-1))
        yield torch.autograd.grad(both.sum(), [shown])[0]
