import torch
from torch import nn


def train(controller: nn.Module, plant, opt, horizon, batches):
    """The loss of each time step depends on the state of the step before: one graph, one backward."""
    for x0 in batches:
        state = x0.cuda()
        h = None
        cost = 0.0
        for t in range(horizon):
            u, h = controller(state, h)
            state = plant(state, u)
            cost = cost + state.pow(2).sum(-1).mean() + 1e-3 * u.pow(2).mean()
        opt.zero_grad()
        cost.backward()
        opt.step()
        print(cost.item())
