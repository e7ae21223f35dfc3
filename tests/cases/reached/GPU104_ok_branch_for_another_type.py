"""The storage has a branch that keeps what is no list; this program hands it lists of numbers only."""
# file: train.py
import torch
import torch.nn.functional as F

from board import Board


def train(net: torch.nn.Module, loader, opt):
    net.cuda()
    board = Board()
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        board.put("loss", [loss, F.l1_loss(y, y.roll(1, 0))])
    board.show()
# file: board.py
class Board:
    def __init__(self):
        self.last, self.sums = {}, {}

    def put(self, name, values):
        if isinstance(values, (list, tuple)):
            self.last[name] = [float(v) for v in values]
        else:
            self.sums[name] = self.sums.get(name, 0) + values

    def show(self):
        print(self.last, {name: float(total) for name, total in self.sums.items()})
