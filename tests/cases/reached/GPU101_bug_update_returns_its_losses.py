"""An agent's update, written for others to call: after its own backwards it returns both losses with their graphs."""

import torch
import torch.nn.functional as F
from torch import nn


class SoftQ:
    def __init__(self, actor: nn.Module, critic: nn.Module, slow: nn.Module, lr=3e-4, gamma=0.99):
        self.actor, self.critic, self.slow = actor.cuda(), critic.cuda(), slow.cuda().requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr)
        self.gamma = gamma

    def update(self, batch):
        seen, acts, rewards, then, done = (x.cuda() for x in batch)
        with torch.no_grad():
            wanted = rewards + self.gamma * (1 - done) * self.slow(then, self.actor(then))
        critic_loss = F.mse_loss(self.critic(seen, acts), wanted)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        actor_loss = -self.critic(seen, self.actor(seen)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        return critic_loss, actor_loss  # low: GPU101
