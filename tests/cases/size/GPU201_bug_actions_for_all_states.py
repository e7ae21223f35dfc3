# A policy is run on all that a loader has of recorded states, and its choices are counted: batches, and no next action.
import torch
from torch import nn


class Agent:
    def __init__(self, width, actions, device):
        self.device = device
        self.policy = nn.Sequential(nn.Linear(width, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.Linear(4096, actions)).to(device)
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def choose(self, observations):
        scores = self.policy(observations.to(self.device))  # expect: GPU201@a
        return scores.argmax(1).detach().cpu().numpy()

    def learn(self, states, returns):
        loss = (self.policy(states).max(1).values - returns).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def agreement(agent, loader):
    agent.policy.eval()
    same = total = 0
    for observations, actions in loader:
        chosen = agent.choose(observations)  # expect: GPU201@a
        same += (chosen == actions.numpy()).sum()
        total += len(actions)
    return same / total
