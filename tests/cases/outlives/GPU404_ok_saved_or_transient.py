import copy

import torch


def fit(net, twin, epochs, train, score):
    net.cuda()
    best = 0.0
    for _ in range(epochs):
        train(net)
        if score(net) > best:
            weights = net.state_dict()
            torch.save(weights, "best.pt")
    twin.load_state_dict(copy.deepcopy(net.state_dict()))
    net.load_state_dict(torch.load("best.pt", map_location="cpu"))
