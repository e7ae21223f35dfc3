"""Numbers are read of what a helper gives, and a backward goes through what it has kept of it."""

import torch
from torch import nn
from torch.distributions import Categorical


class Learner:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.seen = None

    def kept_probs(self, states, actions):
        self.seen = Categorical(logits=self.net(states)).log_prob(actions)
        return self.seen

    def learn_from_kept(self, states, actions, gain):
        print(self.kept_probs(states, actions).mean().item())
        loss = -(self.seen * gain).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
