"""An event storage with a stack of its own keeps each named value of each step."""
# file: tools/train_net.py
import torch
from torch import nn

from events import current_storage, recording


def do_train(net: nn.Module, loader, max_iter):
    net.cuda().train()
    opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    with recording() as storage:
        for step, (x, y) in zip(range(max_iter), loader):
            terms = {"cls": nn.functional.cross_entropy(net(x.cuda()), y.cuda())}
            total = sum(terms.values())
            opt.zero_grad()
            total.backward()
            opt.step()
            storage.put(step, total_loss=total, **terms)  # expect: GPU104|GPU101
            if step % 20 == 0:
                print(step, current_storage().latest("total_loss"))
# file: events.py
from collections import defaultdict
from contextlib import contextmanager

_STACK = []


class Storage:
    def __init__(self):
        self.series = defaultdict(list)

    def put(self, step, **values):
        for name, value in values.items():
            self.series[name].append((value, step))

    def latest(self, name):
        return float(self.series[name][-1][0])


def current_storage():
    return _STACK[-1]


@contextmanager
def recording():
    _STACK.append(Storage())
    yield _STACK[-1]
    _STACK.pop()
