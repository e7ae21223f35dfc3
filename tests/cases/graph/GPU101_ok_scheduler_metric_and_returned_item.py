import torch
from torch import nn


def step(model, batch, opt, crit):
    opt.zero_grad()
    loss = crit(model(batch[0].cuda()), batch[1].cuda())
    loss.backward()
    opt.step()
    return loss.item(), batch[0].size(0)


def fit(model, train_dl, opt, sched, epochs):
    crit = nn.CrossEntropyLoss()
    history = []
    for ep in range(epochs):
        losses, nums = zip(*[step(model, b, opt, crit) for b in train_dl])
        loss = sum(l * n for l, n in zip(losses, nums)) / sum(nums)
        history.append(loss)
        sched.step(loss)
    return history
