"""Saved, with an evaluation beside it, where a count of steps has run down: not in every step."""

import torch
import torch.nn as nn


class Saver:
    def save(self, model, path):
        weights = model.cpu().state_dict()
        torch.save(weights, path)
        model.cuda()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        total = sum(nn.functional.cross_entropy(model(x.cuda()), y.cuda()).item() for x, y in loader)
    model.train()
    return total


def train(model, loader, dev_loader, optimizer, eval_steps):
    left, saver = eval_steps, Saver()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        left -= len(y)
        if left <= 0:
            left = eval_steps
            print(evaluate(model, dev_loader))
            saver.save(model, "last.pt")
