"""The translation model trains itself by a method that returns its loss; the script adds it up until the next checkpoint."""
# file: main.py
import argparse

from nmt.data import bucketed
from nmt.translator import Translator


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--every", type=int, default=2000)
    args = parser.parse_args()
    translator = Translator(32_000, 512)
    since, words = 0, 0
    for step, (source, target) in enumerate(bucketed(args.corpus), 1):
        words += target.numel()
        since += translator.learn(source, target)  # expect: GPU101
        if step % args.every == 0:
            print(f"{step}: {since / args.every:.3f} ({words} words)")
            translator.save(f"nmt-{step}.pt")
            since, words = 0, 0


if __name__ == "__main__":
    main()
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

    def save(self, path):
        torch.save(self.net.state_dict(), path)
