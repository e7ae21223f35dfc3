import torch


class Stopper:
    def __init__(self):
        self.best, self.weights = None, None

    def __call__(self, value, net):
        if self.best is None or value < self.best:
            self.best = value
            self.weights = net.state_dict()  # expect: GPU404

    def restore(self, net):
        net.load_state_dict(self.weights)
