# file: networks.py
"""A builder of another file leaves the network on the host, and what is loaded goes there as well."""

from torchvision.models import vit_l_16


def build(settings):
    net = vit_l_16(num_classes=settings.classes)
    return net, net.parameters()


# file: run.py
import torch
from networks import build
from settings import read
from training import one_epoch

if __name__ == "__main__":
    settings = read()
    net, weights = build(settings)
    optimizer = torch.optim.SGD(weights, lr=0.1)
    if settings.resume:
        last = torch.load(settings.resume, map_location="cpu")
        net.load_state_dict(last["net"])
        optimizer.load_state_dict(last["optimizer"])
        del last
    net = net.cuda()
    for epoch in range(settings.epochs):
        one_epoch(net, optimizer)
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "last.pth")
