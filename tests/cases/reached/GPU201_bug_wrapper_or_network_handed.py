"""What is called like a network is a wrapper that works without grad, or the network itself, as the caller has chosen."""

import numpy as np
import torch


class Scorer:
    def __init__(self, net):
        self.net = net

    def __call__(self, batch):
        with torch.no_grad():
            return self.net(batch).cpu().numpy()


def score(model, batches):
    scores = []
    for batch in batches:
        scores.append(model(batch.cuda()))  # low: GPU101, GPU201
    return np.concatenate(scores, 0)


def of_networks(model, batches):
    model.eval()
    scores = []
    for batch in batches:
        scores.append(model(batch.cuda()))  # expect: GPU101|GPU201
    return torch.cat(scores)


def main(options, batches):
    model = torch.load(options.path)
    model.eval()
    model.cuda()
    print(of_networks(model, batches).mean())  # maybe: GPU201
    if options.wrapped:
        model = Scorer(model)
    print(score(model, batches).mean())
