"""Under no_grad nothing gets a graph; what is put by there has the one that it came with."""

# file: reporters.py
import torch


class EpochReporter:
    def __init__(self):
        self.all_losses = []
        self.total_loss = 0.0

    def add_batch_stats(self, loss, scores):
        self.all_losses.append(loss)  # expect: GPU101|GPU104@k
        self.total_loss += loss
        self.right = torch.argmax(scores, 1)

    def report(self):
        return sum(float(loss) for loss in self.all_losses)

    def reset(self):
        self.all_losses = []


# file: trainer.py
import torch
from reporters import EpochReporter


def train(net, loader, opt):
    reporter = EpochReporter()
    for x, y in loader:
        scores = net(x.cuda())
        loss = torch.nn.functional.cross_entropy(scores, y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            reporter.add_batch_stats(loss, scores)  # expect: GPU101|GPU104@k
    return reporter.report()
