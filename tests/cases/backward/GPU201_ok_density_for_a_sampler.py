import hamiltorch
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1)).cuda().eval()
points = torch.randn(64, 2).cuda()


def log_density(weights):
    total = 0.0
    for point in points.split(16):
        out = net(point)
        total = total - (out - weights).pow(2).sum()
    return total


def draw(start):
    return hamiltorch.sample(log_prob_func=log_density, params_init=start.cuda(), num_samples=100)
