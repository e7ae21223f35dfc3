"""A meter that weighs the loss by the length of the predictions: of these, which have a graph, it takes a number."""

# file: meter.py
from collections import defaultdict


class Meter:
    def __init__(self):
        self.sums = defaultdict(float)

    def track(self, loss, predicted):
        self.sums["loss"] += loss * len(predicted)

    def compute(self, count):
        return {name: value / count for name, value in self.sums.items()}

    def reset(self):
        self.sums.clear()


# file: client.py
from meter import Meter
from torch.nn.functional import cross_entropy


class Client:
    def __init__(self, net, opt, loader):
        self.net, self.opt, self.loader = net.cuda(), opt, loader

    def update(self):
        meter = Meter()
        for x, y in self.loader:
            predicted = self.net(x.cuda())
            loss = cross_entropy(predicted, y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            meter.track(loss.item(), predicted)
        return meter.compute(len(self.loader))
