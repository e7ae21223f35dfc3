"""One caller guards it, the other one does not."""

import torch
from torch.autograd import Variable


def _ages(net, image):
    return net(Variable(image.cuda(), volatile=True)).cpu().tolist()  # expect: GPU204


def ages(net, images):
    with torch.no_grad():
        return [_ages(net, image) for image in images]


def age(net, image):
    net.eval()
    print(_ages(net, image).index(0.5))  # maybe: GPU201
