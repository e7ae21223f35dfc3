import torch
from torch import nn


def train(model, it, opt, mode):
    total = 0.0
    while (batch := next(it, None)) is not None:
        x, y = batch
        match mode:
            case "mse":
                loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            case "mae":
                loss = nn.functional.l1_loss(model(x.cuda()), y.cuda())
            case _:
                raise ValueError(mode)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss  # expect: GPU101
    return total
