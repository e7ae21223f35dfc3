"""The same names as in a training step, but what the evaluation collects is only looked at."""

import torch
from elsewhere import divergence, show
from torch.distributions import Independent, Normal


def fit(world, batches, held_out, optimizer):
    for batch in batches:
        mean = world(batch["frames"])
        loss, _ = divergence(Independent(Normal(mean, 1.0), 1), batch["actions"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    world.eval()
    means = []
    for batch in held_out:
        mean = world(batch["frames"])  # maybe: GPU201
        means.append(mean)  # expect: GPU101
    means = torch.cat(means, dim=0)
    loss = divergence(Normal(means, 1.0), 0.0)[0].item()
    show(loss, means.shape)
