"""The object has a way without grad of its own, and the class beside offers it: who calls this one wants the graph."""

import torch


class Greedy:
    def __init__(self, q):
        self.q = q

    def __call__(self, state):
        self.q.eval()
        return torch.argmax(self.q(state.cuda())).item()

    def no_grad(self, state):
        return torch.argmax(self.q.no_grad(state.cuda())).item()
