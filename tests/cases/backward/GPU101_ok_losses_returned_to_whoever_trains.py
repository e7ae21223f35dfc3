"""The same two losses, made for others who go backward through them: nothing here has done so."""

import torch
import torch.nn.functional as F
from torch import nn


class SoftQ:
    def __init__(self, actor: nn.Module, critic: nn.Module, slow: nn.Module, gamma=0.99):
        self.actor, self.critic, self.slow = actor.cuda(), critic.cuda(), slow.cuda().requires_grad_(False)
        self.gamma = gamma

    def losses(self, batch):
        seen, acts, rewards, then, done = (x.cuda() for x in batch)
        with torch.no_grad():
            wanted = rewards + self.gamma * (1 - done) * self.slow(then, self.actor(then))
        critic_loss = F.mse_loss(self.critic(seen, acts), wanted)
        actor_loss = -self.critic(seen, self.actor(seen)).mean()
        return critic_loss, actor_loss
