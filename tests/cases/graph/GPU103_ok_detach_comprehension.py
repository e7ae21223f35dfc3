import torch
from torch import nn


def train(lm, loader, opt, device):
    hidden = None
    for x, y in loader:
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden)
        out, hidden = lm(x.to(device), hidden)
        loss = nn.functional.cross_entropy(out.flatten(0, 1), y.to(device).flatten())  # maybe: GPU401
        opt.zero_grad()
        loss.backward()
        opt.step()


def train_lists(lm, loader, opt, device):
    state = lm.init_state(32, device)
    for x, y in loader:
        pred, state = lm(x.to(device), state)
        cost = nn.functional.mse_loss(pred, y.to(device))
        opt.zero_grad()
        cost.backward()
        opt.step()
        state = [s.detach() for s in state]
