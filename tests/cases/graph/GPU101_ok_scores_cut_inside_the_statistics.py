"""The statistics object of another file detaches what its metric makes before it is kept."""
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
        stats.append(estimate, clean)
    print(stats.summary())
# file: stats.py
import torch


class Statistics:
    def __init__(self, metric):
        self.metric, self.scores = metric, []

    def append(self, *args, **kwargs):
        scores = self.metric(*args, **kwargs).detach()
        self.scores.extend(scores.cpu().tolist())

    def summary(self):
        scores = torch.tensor(self.scores)
        return {"mean": scores.mean().item(), "worst": scores.min().item()}
