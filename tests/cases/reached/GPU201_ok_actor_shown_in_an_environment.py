"""A trained actor moves through an environment, one small state at a time, to be looked at."""

import torch
from torch import nn


def show(env, actor: nn.Module, device: torch.device, most_steps: int):
    state, total = env.reset(), 0.0
    for _ in range(most_steps):
        chosen = actor(torch.as_tensor(state, dtype=torch.float32, device=device).unsqueeze(0))
        state, reward, done, _ = env.step(chosen.detach().cpu().numpy()[0])
        total += reward
        env.render()
        if done:
            break
    return total


if __name__ == "__main__":
    import gym

    device = torch.device("cuda")
    show(gym.make("Pendulum-v1"), nn.Linear(3, 1).to(device), device, 200)
