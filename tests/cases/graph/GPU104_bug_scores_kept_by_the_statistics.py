"""The statistics object of another file keeps what its metric makes as it is."""
# file: enhance.py
import torch
import torch.nn.functional as F

from stats import Statistics


def snr(estimate, clean):
    return 10 * torch.log10(clean.pow(2).sum(-1) / (clean - estimate).pow(2).sum(-1))


def train(net: torch.nn.Module, loader, opt):
    net.cuda()
    stats = Statistics(metric=snr)
    for noisy, clean in loader:
        noisy, clean = noisy.cuda(), clean.cuda()
        estimate = net(noisy)
        loss = F.l1_loss(estimate, clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
        stats.append(estimate, clean)  # expect: GPU104|GPU101@s
    print(stats.summary())
# file: stats.py
import torch


class Statistics:
    def __init__(self, metric):
        self.metric, self.scores = metric, []

    def append(self, *args, **kwargs):
        scores = self.metric(*args, **kwargs)
        self.scores.append(scores)  # expect: GPU104|GPU101@s

    def summary(self):
        scores = torch.cat(self.scores).detach()
        return {"mean": scores.mean().item(), "worst": scores.min().item()}
