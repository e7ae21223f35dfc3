"""What `volatile=True` was meant for is done by the decorator, or by the one caller: dead text that costs nothing."""

import torch
from torch.autograd import Variable


@torch.no_grad()
def faces(net, image):
    found = net(Variable(image.cuda(), volatile=True))
    return found.cpu().tolist()


def _ages(net, image):
    return net(Variable(image.cuda(), volatile=True)).cpu().tolist()


def ages(net, images):
    with torch.no_grad():
        return [_ages(net, image) for image in images]
