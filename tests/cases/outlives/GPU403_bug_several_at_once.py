"""Several checkpoints in one list, all of them on the GPU, though the network is given one after another."""

import torch
from torchvision.models import vgg16

from scoring import score


def best_of(make, paths, settings):
    network = make(settings).cuda()
    states = [torch.load(path, map_location="cuda") for path in paths]  # expect: GPU403
    best = 0.0
    for state in states:
        network.load_state_dict(state)
        best = max(best, score(network, settings))
    return best


def average(paths, loader):
    network = vgg16().cuda()
    kept = []
    for path in paths:
        checkpoint = torch.load(path, map_location="cuda:0")  # expect: GPU403
        kept.append(checkpoint["network"])
    mean = {key: sum(state[key] for state in kept) / len(kept) for key in kept[0]}
    network.load_state_dict(mean)
    with torch.no_grad():
        for x, y in loader:
            print((network(x.cuda()).argmax(1) == y.cuda()).sum().item())


def average_of_unseen(make, paths):
    network = make().cuda()
    states = [torch.load(path)["network"] for path in paths]  # low: GPU403
    network.load_state_dict({key: sum(state[key] for state in states) / len(states) for key in states[0]})
    return network
