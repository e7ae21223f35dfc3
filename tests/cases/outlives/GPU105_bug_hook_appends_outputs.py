import torch
from torch import nn
from torchvision.models import resnet18

net = resnet18().cuda()
activations = []


def keep(module, inputs, output):
    activations.append(output)  # expect: GPU105@h


net.layer4.register_forward_hook(keep)  # expect: GPU105@h


def train(loader, opt):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
