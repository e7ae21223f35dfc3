"""Log-probabilities gather in the object and go when the episode's backward has been through them."""

import torch
from torch import nn


class Reinforce:
    def __init__(self, policy: nn.Module):
        self.policy = policy.cuda()
        self.opt = torch.optim.Adam(policy.parameters(), 1e-2)
        self.log_probs, self.rewards = [], []

    def act(self, state):
        dist = torch.distributions.Categorical(logits=self.policy(state.cuda()))
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action))
        return action.item()

    def finish(self):
        gains, gain = [], 0.0
        for reward in reversed(self.rewards):
            gain = reward + 0.99 * gain
            gains.insert(0, gain)
        loss = sum(-lp * g for lp, g in zip(self.log_probs, gains))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        del self.log_probs[:], self.rewards[:]


def main(env, policy, episodes):
    agent = Reinforce(policy)
    for _ in range(episodes):
        state, done = env.reset(), False
        while not done:
            state, reward, done = env.step(agent.act(state))
            agent.rewards.append(reward)
        agent.finish()
