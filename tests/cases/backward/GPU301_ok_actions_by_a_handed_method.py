"""Both critics' losses go through the actions that a helper draws with the policy that it is handed."""

import torch


class Agent:
    def __init__(self, actor, first, second):
        self.actor, self.first, self.second = actor.cuda(), first.cuda(), second.cuda()
        self.opt_first = torch.optim.Adam(first.parameters())
        self.opt_second = torch.optim.Adam(second.parameters())

    def policy(self, state):
        return self.actor(state).rsample()

    def draw(self, state, count, run=None):
        return run(state.repeat(count, 1))

    def update(self, state, action, goal):
        drawn = self.draw(state, 10, run=self.policy)
        likely = self.first(state, action)
        loss_first = (likely - goal).pow(2).mean() + self.first(state, drawn).mean()
        likely = self.second(state, action)
        loss_second = (likely - goal).pow(2).mean() + self.second(state, drawn).mean()
        self.opt_first.zero_grad()
        loss_first.backward(retain_graph=True)
        self.opt_first.step()
        self.opt_second.zero_grad()
        loss_second.backward()
        self.opt_second.step()
