"""Of the statistics of each minibatch one is moved but not cut; the others are numbers. They are kept over all rounds."""

import torch
from torch import nn


class Clipped:
    def __init__(self, policy: nn.Module, value: nn.Module, epochs=4):
        self.policy, self.value, self.epochs = policy.cuda(), value.cuda(), epochs
        self.opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], 3e-4)
        self.all_stats = []

    def improve(self, rollout):
        for _ in range(self.epochs):
            for obs, acts, old, adv, ret in rollout.minibatches(1024):
                dist = torch.distributions.Categorical(logits=self.policy(obs.cuda()))
                log_prob = dist.log_prob(acts.cuda())
                ratio = (log_prob - old.cuda()).exp()
                adv = adv.cuda()
                pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
                vf = (self.value(obs.cuda()).squeeze(-1) - ret.cuda()).pow(2).mean()
                loss = pg + 0.5 * vf - 0.01 * dist.entropy().mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.all_stats.append({  # expect: GPU101
                    "policy": pg.item(),
                    "value": vf.item(),
                    "kl": (old.cuda() - log_prob).cpu().mean(),
                    "clipped": (ratio.sub(1).abs() > 0.2).float().mean().item(),
                })
