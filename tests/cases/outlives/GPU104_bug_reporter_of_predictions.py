"""A reporter of another file is told the scores of every batch of the training; it turns them into numbers at the epoch's end."""
# file: classify.py
import torch
import torch.nn.functional as F

from reporting import CalibrationReporter


def epoch(net: torch.nn.Module, loader, optimizer):
    net.cuda().train()
    reporter = CalibrationReporter(bins=15)
    for x, y in loader:
        logits = net(x.cuda())
        loss = F.cross_entropy(logits, y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        reporter.batch_done(logits, y)  # expect: GPU104|GPU101
    return reporter.report()
# file: reporting.py
import torch


class CalibrationReporter:
    def __init__(self, bins):
        self.bins, self.scores, self.truth = bins, [], []

    def batch_done(self, logits, labels):
        self.scores.append(logits.softmax(-1).cpu())
        self.truth.append(labels.cpu())

    def report(self):
        scores, truth = torch.cat(self.scores), torch.cat(self.truth)
        sure, guess = scores.max(1)
        return torch.histc(sure.detach()[guess == truth], self.bins, 0, 1).tolist()
