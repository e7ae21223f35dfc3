"""A training rollout: only where weights are loaded for a show does the network go into eval mode, which is not here."""

import sys

import torch
from torch import nn


class Agent:
    def __init__(self, policy: nn.Module):
        self.policy = policy.cuda()
        self.optimizer = torch.optim.Adam(self.policy.parameters())

    def update(self, states, returns):
        loss = -(self.policy.score(states) * returns).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def load(self, path):
        self.policy.load_state_dict(torch.load(path, map_location="cpu"))
        self.policy.eval()


def main(environment, policy, episodes):
    agent = Agent(policy)
    for _ in range(episodes):
        state, hidden = environment.reset(), torch.zeros(1, 1, 512).cuda()  # maybe: GPU505
        states = []
        for _ in range(200):
            action, hidden = agent.policy.act(state, hidden)
            state, _ = environment.step(action)
            states.append(state)
        agent.update(torch.stack(states).cuda(), torch.ones(200).cuda())  # maybe: GPU505


if __name__ == "__main__":
    main(*map(__import__, sys.argv))
