"""The history turns a tensor into a number, and adds up whatever else it is given; it is given losses."""
# file: tune.py
import torch
from torch import nn

from history import History


def tune(tagger: nn.Module, batches, rounds):
    tagger.to("cuda")
    opt = torch.optim.Adagrad(tagger.parameters(), 0.05)
    history = History()
    for _ in range(rounds):
        for words, tags in batches:
            score = tagger(words.to("cuda"))
            loss = nn.functional.nll_loss(score.log_softmax(-1).flatten(0, 1), tags.to("cuda").flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            history.add(loss=loss, words=words.numel())
    print(history.means())
# file: history.py
import torch


class History:
    def __init__(self):
        self.totals, self.times = {}, 0

    def add(self, **values):
        self.times += 1
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            self.totals[name] = self.totals.get(name, 0) + value

    def means(self):
        return {name: total / self.times for name, total in self.totals.items()}
