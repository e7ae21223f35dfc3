"""Freed graphs that are held for one step, or of which one is added now and then, beside those that pile up over an epoch."""

import torch
from torch import nn


class Coach:
    def __init__(self, options, loader):
        self.net = nn.Linear(8, 8)
        self.options = options
        self.loader = loader
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def refine(self, x, y):
        guess = x
        guesses = []
        by_sample = {n: [] for n in range(x.shape[0])}
        for _ in range(self.options.rounds):
            guess = self.net(guess.detach())
            loss = (guess - y).pow(2).mean()
            loss.backward()
            guesses.append(guess)  # low: GPU101
            for n in range(x.shape[0]):
                by_sample[n].append([guess[n], n])  # low: GPU101
        return guesses, by_sample

    def fit(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            guesses, by_sample = self.refine(x, y)
            self.optimizer.step()
            print(guesses[0].shape, len(by_sample))

    def each_round_of_a_batch(self, rounds):
        for x, y in self.loader:
            seen = []
            for _ in range(rounds):
                self.optimizer.zero_grad()
                out = self.net(x)
                (out - y).pow(2).mean().backward()
                self.optimizer.step()
                seen.append(out)  # low: GPU101
            print(len(seen))

    def now_and_then(self, every):
        log = {"loss": 0, "mask": 0}
        for number, (x, y) in enumerate(self.loader):
            loss = (self.net(x) - y).pow(2).mean()
            if number % every == 0:
                mask = self.net(x).mean()
                log["mask"] += mask / every  # low: GPU101
                loss = loss + mask
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            log["loss"] += loss.item()
        return log

    def each_step_of_an_epoch(self):
        losses = []
        for x, y in self.loader:
            loss = (self.net(x) - y).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss)  # expect: GPU101
        print(torch.stack(losses).mean())

    def each_step_of_several_batches(self, every):
        total = 0
        for number, (x, y) in enumerate(self.loader):
            loss = (self.net(x) - y).pow(2).mean()
            loss.backward()
            if (number + 1) % every == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
                total += loss  # expect: GPU101
        return total
