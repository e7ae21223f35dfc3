import torch
from torch import nn
from torch.autograd import Variable


@torch.no_grad()  # expect: GPU204@d
class Predictor:  # expect: GPU204@d
    def __init__(self, net: nn.Module):
        self.net = net.cuda().eval()

    def __call__(self, x):
        return self.net(x.cuda()).cpu()  # maybe: GPU201


def legacy(net, x):
    net.eval()
    v = Variable(x.cuda(), volatile=True)  # expect: GPU204
    return net(v).data.cpu()  # maybe: GPU201
