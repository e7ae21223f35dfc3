from torch import nn


class Record:
    def __init__(self):
        self.rows = {}

    def log(self, step, value):
        self.rows[step] = value


def train(net, loader, opt):
    record = Record()
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        record.log(i, loss)  # expect: GPU104|GPU101
    return record
