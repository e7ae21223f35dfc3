import torch


def fit(net, epochs, train, score):
    best, best_weights = 0.0, None
    for _ in range(epochs):
        train(net)
        current = score(net)
        if current > best:
            best = current
            best_weights = net.state_dict()  # expect: GPU404
    net.load_state_dict(best_weights)
    return best


class Stopper:
    def __init__(self):
        self.best, self.weights = None, None

    def __call__(self, value, net):
        if self.best is None or value < self.best:
            self.best = value
            self.weights = net.state_dict()  # expect: GPU404

    def restore(self, net):
        net.load_state_dict(self.weights)
