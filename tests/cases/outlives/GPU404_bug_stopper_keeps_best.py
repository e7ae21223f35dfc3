"""Early stopping in a file of its own: the copy stays where the model is."""

import copy


class Stopper:
    def __init__(self, patience):
        self.patience = patience
        self.best = float("inf")
        self.weights = None
        self.waited = 0

    def __call__(self, loss, network):
        if loss < self.best:
            self.best, self.waited = loss, 0
            self.weights = copy.deepcopy(network.state_dict())  # low: GPU404
        else:
            self.waited += 1
        return self.waited > self.patience
