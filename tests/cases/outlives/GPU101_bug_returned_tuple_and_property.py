import torch
from torch import nn


class Runner:
    def __init__(self, model, crit, opt):
        self.model, self.crit, self.opt = model, crit, opt
        self._losses = []

    @property
    def mean_loss(self):
        return sum(self._losses) / max(1, len(self._losses))

    def _forward(self, batch):
        x, y = batch
        out = self.model(x.cuda())
        return out, self.crit(out, y.cuda())

    def run(self, loader):
        for batch in loader:
            out, loss = self._forward(batch)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self._losses.append(loss)  # expect: GPU101
        return float(self.mean_loss)


def main(model, loader):
    print(Runner(model.cuda(), nn.L1Loss(), torch.optim.Adam(model.parameters())).run(loader))
