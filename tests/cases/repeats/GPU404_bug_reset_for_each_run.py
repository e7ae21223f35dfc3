import copy

import torch
from torch import nn


def compare(optimizers, train, score):
    net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    start = copy.deepcopy(net.state_dict())  # low: GPU404
    scores = {}
    for name, make in optimizers.items():
        net.load_state_dict(start)
        train(net, make(net.parameters()))
        scores[name] = score(net)
    return scores


def continue_with(twin, loader):
    net = torch.compile(twin.cuda())
    weights = copy.deepcopy(net.state_dict())  # low: GPU404
    twin.load_state_dict(weights)
    for x in loader:
        yield twin(x.cuda())
