import copy

import torch


class Averages:
    """A moving average is computed where the weights are."""

    def __init__(self, net):
        self.net = net.cuda()
        self.shadow = {k: v.clone() for k, v in net.state_dict().items()}

    def update(self, decay):
        for k, v in self.net.state_dict().items():
            self.shadow[k].mul_(decay).add_(v, alpha=1 - decay)


def reptile(net, task, lr):
    before = copy.deepcopy(net.cuda().state_dict())
    task(net)
    after = net.state_dict()
    net.load_state_dict({k: before[k] + lr * (after[k] - before[k]) for k in before})
