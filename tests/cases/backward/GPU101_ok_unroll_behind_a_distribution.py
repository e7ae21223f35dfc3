"""One step unrolls a recurrent model. What it collects becomes a distribution, and a loss of several terms; a helper
runs the backward through that."""

import torch
from elsewhere import improve_by
from torch import nn
from torch.distributions import Independent, Normal, kl_divergence


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body, self.head = nn.GRUCell(width, width), nn.Linear(width, 2 * width)

    def step(self, state, seen):
        state = self.body(seen, state)
        mean, deviation = self.head(state).chunk(2, -1)
        return state, (mean, deviation)


class World(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder, self.cell = nn.Linear(64, width), Cell(width)


def divergence(guess, actions, least=1.0):
    terms = kl_divergence(guess, Independent(Normal(actions, 1.0), 1)).mean()
    floor = torch.tensor(least, device=terms.device)
    terms = torch.max(terms, floor)
    return terms - guess.entropy().mean(), terms


def improve(fabric, loss, optimizer, limit=None):
    optimizer.zero_grad(set_to_none=True)
    fabric.backward(loss)
    optimizer.step()
    return limit


def step(fabric, world: World, data, optimizer, horizon):
    state = torch.zeros(16, 32, device=fabric.device)
    means, deviations = [], []
    frames = data["frames"]
    for t in range(0, horizon):
        state, both = world.cell.step(state, world.encoder(frames[t : t + 1]))  # maybe: GPU201
        means.append(both[0])
        deviations.append(both[1])
    means = torch.cat(means, dim=0)
    deviations = torch.cat(deviations, dim=0)
    guess = Independent(Normal(means, deviations), 1)
    loss, parts = divergence(guess, data["actions"])
    return improve(fabric, loss, optimizer), parts.detach()


def step_by_stranger(fabric, world: World, data, optimizer: torch.optim.Optimizer, horizon):
    state = torch.zeros(16, 32, device=fabric.device)
    means = []
    frames = data["frames"]
    for t in range(0, horizon):
        state, both = world.cell.step(state, world.encoder(frames[t : t + 1]))  # maybe: GPU201
        means.append(both[0])
    loss, _ = divergence(Independent(Normal(torch.cat(means, dim=0), 1), 1), data["actions"])
    improve_by(fabric, loss, optimizer)
