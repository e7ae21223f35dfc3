"""The node refers weakly to the object."""

import weakref


class Relevance:
    def __init__(self, rule):
        self.rule = rule
        self.came = None

    def before(self, module, given):
        x = given[0].clone()
        me = weakref.ref(self)
        x.grad_fn.register_hook(lambda *grads: me().rule(grads, me().came))
        return (x,)

    def after(self, module, given, out):
        self.came = out
