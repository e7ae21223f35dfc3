"""What is called like a network is an object that works without grad, as all the callers make it."""

import numpy as np
import torch


class Scorer:
    def __init__(self, net, device):
        self.net = net
        self.device = device

    def __call__(self, left, right):
        pairs = torch.tensor(left + right).to(self.device)
        with torch.no_grad():
            vectors = self.net(pairs)
            near = np.zeros(len(left))
            near[:] = (vectors[: len(left)] - vectors[len(left) :]).abs().sum(1).cpu().numpy()
        return near


class Aligner:
    def __call__(self, left, right):
        near = np.zeros(len(left))
        for n in range(len(left)):
            near[n] = len(set(left[n]) & set(right[n]))
        return near


def score(model, left, right, size=100):
    scores = []
    for n in range(0, len(left), size):
        scores.append(model(left[n : n + size], right[n : n + size]))
    return np.concatenate(scores, 0)


def main(options, left, right):
    if options.path == "align":
        model = Aligner()
    else:
        net = torch.load(options.path)
        net.eval()
        net.cuda()
        model = Scorer(net, "cuda")
    print(score(model, left, right).mean())
