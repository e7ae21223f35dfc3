"""What the helper draws is cut off before the critics see it: their losses share nothing."""

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
        drawn = self.draw(state, 10, run=self.policy).detach()
        loss_first = (self.first(state, action) - goal).pow(2).mean() + self.first(state, drawn).mean()
        loss_second = (self.second(state, action) - goal).pow(2).mean() + self.second(state, drawn).mean()
        self.opt_first.zero_grad()
        loss_first.backward(retain_graph=True)  # expect: GPU301
        self.opt_first.step()
        self.opt_second.zero_grad()
        loss_second.backward()
        self.opt_second.step()
