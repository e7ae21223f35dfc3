"""The reporter is told the classes that were chosen: integers have no graph."""
# file: classify.py
import torch
import torch.nn.functional as F

from reporting import ConfusionReporter


def epoch(net: torch.nn.Module, loader, optimizer):
    net.cuda().train()
    reporter = ConfusionReporter(classes=15)
    for x, y in loader:
        logits = net(x.cuda())
        loss = F.cross_entropy(logits, y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        reporter.batch_done(logits, y)
    return reporter.report()
# file: reporting.py
import torch


class ConfusionReporter:
    def __init__(self, classes):
        self.classes, self.guesses, self.truth = classes, [], []

    def batch_done(self, logits, labels):
        self.guesses.append(logits.argmax(-1).cpu())
        self.truth.append(labels.cpu())

    def report(self):
        pairs = torch.cat(self.truth) * self.classes + torch.cat(self.guesses)
        return torch.bincount(pairs, minlength=self.classes**2).view(self.classes, -1)
