import numpy as np
import torch
from torch import nn


def evolve(net: nn.Module, fitness, generations, pop=32, sigma=0.02):
    """Evolution strategies: losses are floats from a simulator."""
    theta = nn.utils.parameters_to_vector(net.parameters()).detach()
    total_loss, losses = 0.0, []
    for g in range(generations):
        noise = torch.randn(pop, theta.numel(), device=theta.device)
        scores = []
        for eps in noise:
            nn.utils.vector_to_parameters(theta + sigma * eps, net.parameters())
            scores.append(fitness(net))
        loss = -float(np.mean(scores))
        losses.append(loss)
        total_loss += loss
        w = torch.tensor(scores, device=theta.device)
        theta = theta + 0.01 / (pop * sigma) * (noise.t() @ ((w - w.mean()) / (w.std() + 1e-8)))
    return losses, total_loss
