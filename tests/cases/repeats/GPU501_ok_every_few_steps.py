"""Under conditions of the same looks: too seldom to cost anything, once an epoch, or after a phase of its own."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy


def step(model: nn.Module, x, y, optimizer):
    loss = cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def score(model: nn.Module, loader):
    found = 0.0
    with torch.no_grad():
        for x, y in loader:
            found += cross_entropy(model(x.cuda()), y.cuda()).item()
    return found


def seldom(model, loader, optimizer, every=200):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % every == 0:
            torch.cuda.empty_cache()
        if index % 1000 == 999:
            torch.cuda.empty_cache()
        if index == 0 or index == len(loader) - 1:
            torch.cuda.empty_cache()


def after_an_evaluation(model, loader, held_out, optimizer):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if (index + 1) % 10 == 0:
            print(score(model, held_out))
            torch.cuda.empty_cache()
        if (index + 1) % 5 == 0:
            with torch.no_grad():
                for a, b in held_out:
                    print(cross_entropy(model(a.cuda()), b.cuda()).item())
            torch.cuda.empty_cache()
        if (index + 1) % 8 == 0:
            torch.save(model.state_dict(), "model.pt")
            torch.cuda.empty_cache()


def by_somebody_else(model: nn.Module, loader, optimizer, evaluator):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        if index % 10 == 0:
            evaluator(model)
            torch.cuda.empty_cache()


def epochs(model, loader, optimizer):
    for epoch in range(90):
        for x, y in loader:
            step(model, x, y, optimizer)
        if epoch % 5 == 0:
            torch.cuda.empty_cache()


def when_little_is_left(model, loader, optimizer):
    for index, (x, y) in enumerate(loader):
        step(model, x, y, optimizer)
        free, total = torch.cuda.mem_get_info()
        if index % 5 == 0 and free < total // 10:
            torch.cuda.empty_cache()
