import torch
from torch import nn


@torch.no_grad()
def collect(policy: nn.Module, env, horizon, device="cuda"):
    policy.eval().to(device)
    traj = []
    obs = env.reset().to(device)
    for _ in range(horizon):
        maps = policy(obs)
        traj.append(maps[0])  # low: GPU102
        obs = env.step(maps.argmax(1)).to(device)
    return torch.stack([m.cpu() for m in traj])
