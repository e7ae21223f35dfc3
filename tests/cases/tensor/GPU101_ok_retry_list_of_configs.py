import torch
from torch import nn


class Tuner:
    """`results` keeps one number and a host copy per trial."""

    def __init__(self, make, loader):
        self.make, self.loader, self.results = make, loader, []

    def trial(self, lr):
        net = self.make().cuda()
        opt = torch.optim.SGD(net.parameters(), lr)
        loss = None
        for x, y in self.loader:
            loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item(), {k: v.cpu() for k, v in net.state_dict().items()}

    def run(self, rates):
        for lr in rates:
            loss, weights = self.trial(lr)
            self.results.append((loss, lr, weights))
        return min(self.results, key=lambda r: r[0])
