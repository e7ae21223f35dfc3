"""The same method returns its loss with what is left of its graph; the script prints every hundredth and keeps none."""
# file: main.py
import sys

from nmt.data import bucketed
from nmt.translator import Translator


def main(corpus):
    translator = Translator(32_000, 512)
    for step, (source, target) in enumerate(bucketed(corpus), 1):
        loss = translator.learn(source, target)
        if step % 100 == 0:
            print(f"{step}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
# file: nmt/translator.py
import torch
from torch import nn


class Translator:
    def __init__(self, vocabulary, width):
        self.net = nn.Transformer(width).cuda()
        self.table = nn.Embedding(vocabulary, width).cuda()
        self.out = nn.Linear(width, vocabulary).cuda()
        weights = [*self.net.parameters(), *self.table.parameters(), *self.out.parameters()]
        self.adam = torch.optim.Adam(weights, lr=1e-4)
        self.criterion = nn.CrossEntropyLoss(ignore_index=0)

    def learn(self, source, target):
        source, target = source.cuda(), target.cuda()
        states = self.net(self.table(source), self.table(target[:-1]))
        self.loss = self.criterion(self.out(states).flatten(0, 1), target[1:].flatten())
        self.adam.zero_grad()
        self.loss.backward()
        self.adam.step()
        return self.loss
