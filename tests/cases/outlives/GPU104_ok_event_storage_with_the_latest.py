"""A storage of the same kind with a slot for each name: it keeps the latest value."""
# file: tools/train_net.py
import torch
from torch import nn

from events import Storage


def do_train(net: nn.Module, loader, max_iter):
    net.cuda().train()
    opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    storage = Storage()
    for step, (x, y) in zip(range(max_iter), loader):
        terms = {"cls": nn.functional.cross_entropy(net(x.cuda()), y.cuda())}
        total = sum(terms.values())
        opt.zero_grad()
        total.backward()
        opt.step()
        storage.put(step, total_loss=total, **terms)
        if step % 20 == 0:
            print(step, storage.latest("total_loss"))
# file: events.py
class Storage:
    def __init__(self):
        self.now = {}

    def put(self, step, **values):
        for name, value in values.items():
            self.now[name] = (value, step)

    def latest(self, name):
        return float(self.now[name][0])
