"""A node of the graph holds the object, the object holds a tensor of that graph: no collector sees the circle."""

import torch


class Relevance:
    def __init__(self, rule):
        self.rule = rule
        self.came = None

    def before(self, module, given):
        x = given[0].clone()
        x.grad_fn.register_hook(lambda *grads: self.rule(grads, self.came))  # low: GPU105
        return (x,)

    def after(self, module, given, out):
        self.came = out
