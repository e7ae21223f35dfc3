"""What a helper computes with a network, and gives with its graph, is read as numbers alone: no eval mode has to say so."""

import torch
from torch import nn
from torch.distributions import Categorical


class Policy:
    def __init__(self, parameters: nn.Module):
        self.device = torch.device("cuda")
        self.parameters = parameters

    def evaluate(self, states, actions):
        logits, values = self.parameters(states)
        chances = Categorical(logits=logits)
        return chances.log_prob(actions), values.squeeze(-1), chances.entropy()

    def divergence(self, states, actions, old):
        log_probs, _, _ = self.evaluate(states, actions)  # expect: GPU201
        return (old - log_probs).mean().item()

    def ratios(self, states, actions, old):
        log_probs, _, _ = self.evaluate(states, actions)
        return (log_probs - old).exp()


class Learner:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def log_probs(self, states, actions):
        return Categorical(logits=self.net(states)).log_prob(actions)

    def learn(self, states, actions, old, gain):
        loss = -(self.log_probs(states, actions) * gain).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        after = self.log_probs(states, actions)  # expect: GPU202
        return (old - after).mean().item()
