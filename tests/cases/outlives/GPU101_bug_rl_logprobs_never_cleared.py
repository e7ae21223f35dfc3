import gym
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical

env = gym.make("CartPole-v1")


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, x):
        return torch.softmax(self.net(x), dim=-1)


policy = Policy().to("cuda")
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
entropies = []

for episode in range(5000):
    obs, done = env.reset(), False
    logps, rewards = [], []
    while not done:
        dist = Categorical(policy(torch.as_tensor(obs, device="cuda").float()))
        action = dist.sample()
        logps.append(dist.log_prob(action))
        entropies.append(dist.entropy())  # expect: GPU101
        obs, r, done, _ = env.step(action.item())
        rewards.append(r)
    R = sum(rewards)
    loss = -R * torch.stack(logps).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 50 == 0:
        print(episode, R, torch.stack(entropies).mean().item())
