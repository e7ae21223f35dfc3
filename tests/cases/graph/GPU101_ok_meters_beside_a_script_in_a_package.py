"""A script imports what stands beside it by its bare name, though its folder is a package as well."""

# file: work/__init__.py
"""A package."""

# file: work/meters.py
class Mean:
    def __init__(self, name):
        self.name = name
        self.values = []

    def add(self, value):
        self.values.append(float(value))

    def flush(self):
        values, self.values = self.values, []
        return self.name, sum(values) / len(values)


# file: work/train.py
import torch
from meters import Mean


class Trainer:
    def __init__(self, net, loader):
        self.net = net.cuda()
        self.loader = loader
        self.optimizer = torch.optim.Adam(net.parameters())

    def log(self, step, means):
        print(step, [mean.flush() for mean in means])

    def train(self):
        means = Mean("loss"), Mean("shift")
        losses, shifts = means
        for step, (x, y) in enumerate(self.loader):
            out = self.net(x.cuda())
            shift = (out - y.cuda()).abs().mean()
            loss = shift + out.norm()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.add(loss.item())
            shifts.add(shift)
            if step % 100 == 99:
                self.log(step, means)
