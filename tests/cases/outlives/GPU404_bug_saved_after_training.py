import copy

import torch


def fit(net, epochs, train, score):
    net.cuda()
    best, weights = 0.0, None
    for _ in range(epochs):
        train(net)
        reached = score(net)
        if reached > best:
            best = reached
            weights = copy.deepcopy(net.state_dict())  # low: GPU404
    torch.save(weights, "best.pt")
