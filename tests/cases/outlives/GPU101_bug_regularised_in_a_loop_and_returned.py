"""A step adds a penalty for each parameter to its loss, has its base class go backward, and returns the loss."""
# file: base.py
class Ranker:
    def go(self, optimizer):
        optimizer.zero_grad()
        self.loss.backward()
        optimizer.step()
# file: pairs.py
import torch
from base import Ranker


class Pairs(Ranker):
    def learn_from(self, first, second):
        margin = self.model(first.cuda()) - self.model(second.cuda())
        self.loss = torch.nn.functional.softplus(-margin).sum()
        for weight in self.model.parameters():
            self.loss += 1e-4 * weight.norm()
        self.go(self.optimizer)
        return self.loss  # low: GPU101
# file: main.py
import torch
from pairs import Pairs


def main(feed, ranker: Pairs):
    total = 0.0
    for first, second in feed:
        total += ranker.learn_from(first, second) / 100  # maybe: GPU101
    return total
