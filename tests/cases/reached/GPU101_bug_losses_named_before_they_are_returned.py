"""A learner goes backward twice, names its losses together and returns them: its callers are not seen."""

import torch.nn.functional as F
from torch import nn, optim


class Learner:
    def __init__(self, critic: nn.Module, actor: nn.Module):
        self.critic, self.actor = critic.cuda(), actor.cuda()
        self.critic_opt = optim.Adam(self.critic.parameters())
        self.actor_opt = optim.Adam(self.actor.parameters())

    def update_model(self, seen, acts, wanted):
        critic_loss = F.smooth_l1_loss(self.critic(seen, acts), wanted)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        actor_loss = -self.critic(seen, self.actor(seen)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        info = (critic_loss, actor_loss)  # low: GPU101
        return info
