"""The cache is emptied in every so many steps: a part of what it costs in each, where the code tells how many."""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy

CLEAR_EVERY = 4


def accumulating(model: nn.Module, loader, optimizer):
    for i, (x, y) in enumerate(loader):
        (cross_entropy(model(x.cuda()), y.cuda()) / 2).backward()
        if (i + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.empty_cache()  # note: GPU501


def and_with_the_last(model: nn.Module, loader, optimizer, scaler, scheduler):
    accumulation = 8
    for i, (x, y) in enumerate(loader):
        scaler.scale(cross_entropy(model(x.cuda()), y.cuda()) / accumulation).backward()
        if (i + 1) % accumulation == 0 or i + 1 == len(loader):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # note: GPU501


def step(model: nn.Module, x, y, optimizer):
    loss = cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def guarded(model, loader, optimizer, device, done=0):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if device.type == "cuda" and index > 0 and index % 5 == 0:
            torch.cuda.empty_cache()  # note: GPU501
        done += 1
        if not done % CLEAR_EVERY:
            torch.cuda.empty_cache()  # note: GPU501


def by_an_option(model, loader, optimizer):
    parser = argparse.ArgumentParser()
    parser.add_argument("--clear-every", type=int, default=10)
    parser.add_argument("--accumulate", type=int, default=1)
    args = parser.parse_args()
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % args.clear_every == args.clear_every - 1:
            torch.cuda.empty_cache()  # note: GPU501
        if (index + 1) % args.accumulate == 0:
            torch.cuda.empty_cache()  # expect: GPU501


def not_seen(model, loader, optimizer, config):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % config.tidy_every == 0:
            torch.cuda.empty_cache()  # note: GPU501


def tidy():
    torch.cuda.empty_cache()


def by_a_helper(model, loader, optimizer, every=6):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % every == 0:
            tidy()  # note: GPU501


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(256, 256), nn.Linear(256, 500)

    def step(self, token, hidden):
        hidden = self.cell(token, hidden)
        return self.out(hidden), hidden


class Translator:
    def __init__(self, accumulate=2):
        self.decoder = Decoder().cuda()
        self.optimizer = torch.optim.Adam(self.decoder.parameters())
        self.accumulate = accumulate

    def forced(self, tokens, hidden, target):
        loss = 0
        for t in range(1, target.size(1)):
            scores, hidden = self.decoder.step(tokens[:, t - 1], hidden)
            loss += cross_entropy(scores, target[:, t])
            if t % 10 == 0 and torch.cuda.is_available():
                torch.cuda.empty_cache()  # note: GPU501
        return loss

    def epoch(self, loader):
        for i, (tokens, hidden, target) in enumerate(loader):
            (self.forced(tokens.cuda(), hidden.cuda(), target.cuda()) / self.accumulate).backward()
            if (i + 1) % self.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
                torch.cuda.empty_cache()  # maybe: GPU501
