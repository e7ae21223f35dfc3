"""Weights that are put back into the very network that they are of: nothing comes back."""

from torch import nn


def with_the_average(net, average, loader, test):
    kept = net.state_dict()  # expect: GPU404
    net.load_state_dict(average)
    test(net, loader)
    net.load_state_dict(kept)


class Adapter:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.start = self.net.state_dict()  # expect: GPU404

    def reset(self):
        self.net.load_state_dict(self.start)


class Given:
    def __init__(self, net: nn.Module):
        self.net = net
        self.start = self.net.state_dict()  # low: GPU404

    def reset(self):
        self.net.load_state_dict(self.start)


def put_back_after_steps_by_map(net: nn.Module, step, loader):
    def one(batch):
        step(net, batch)

    start = net.state_dict()  # expect: GPU404
    list(map(one, loader))
    net.load_state_dict(start)
