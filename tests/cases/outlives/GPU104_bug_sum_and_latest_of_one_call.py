"""A meter of another file keeps the latest values and adds them up: one mistake at one call, told once, for the sum."""
# file: train.py
import torch
import torch.nn.functional as F

from meters import Averages


def train(net: torch.nn.Module, loader, opt):
    net.cuda()
    losses = Averages(2)
    for x, y in loader:
        coarse, fine = net(x.cuda())
        a, b = F.mse_loss(coarse, y.cuda()), F.l1_loss(fine, y.cuda())
        opt.zero_grad()
        (a + b).backward()
        opt.step()
        losses.update([a * 1000, b * 1000])  # expect: GPU104
    print(losses.means())
# file: meters.py
class Averages:
    def __init__(self, number):
        self.latest, self.sums, self.count = [0] * number, [0] * number, 0

    def update(self, values):
        self.count += 1
        if type(values).__name__ == "list":
            for k, value in enumerate(values):
                self.latest[k] = value
                self.sums[k] += value
        else:
            self.latest[0] = values
            self.sums[0] += values

    def means(self):
        return [float(total) / self.count for total in self.sums]
