# file: networks.py
"""A builder of another file moves the network, and gives what the optimizer is for beside it."""

import torch
from torch import nn
from torchvision.models import vit_l_16


def build(settings, teacher=False):
    net = vit_l_16(num_classes=settings.classes)
    if not settings.on_cpu:
        net = net.cuda()
        net = nn.DataParallel(net)
    return net, net.parameters()


def build_on_host(settings):
    net = vit_l_16(num_classes=settings.classes)
    return net, net.parameters()


# file: run.py
import torch
from networks import build, build_on_host
from settings import read
from training import one_epoch

if __name__ == "__main__":
    settings = read()
    net, weights = build(settings)
    optimizer = torch.optim.SGD(weights, lr=0.1)
    criterion = torch.nn.CrossEntropyLoss().cuda()
    if settings.resume:
        last = torch.load(settings.resume)  # expect: GPU403
        net.load_state_dict(last["net"])
    if settings.teacher:
        teacher, _ = build(settings, teacher=True)
        known = torch.load(settings.teacher)  # expect: GPU403
        teacher.load_state_dict(known["net"])
    if settings.judge:
        judge, _ = build_on_host(settings)
        seen = torch.load(settings.judge)  # low: GPU403
        judge.load_state_dict(seen["net"])
    for epoch in range(settings.epochs):
        one_epoch(net, optimizer, criterion)
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pth")
