"""Of the statistics some are no numbers, but have no graph either: a comparison, what came with the batch, a norm of gradients."""

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
                ratio = (dist.log_prob(acts.cuda()) - old.cuda()).exp()
                adv = adv.cuda()
                pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
                vf = (self.value(obs.cuda()).squeeze(-1) - ret.cuda()).pow(2).mean()
                self.opt.zero_grad()
                (pg + 0.5 * vf).backward()
                norm = nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
                self.opt.step()
                self.all_stats.append({
                    "policy": pg.item(),
                    "value": vf.item(),
                    "clipped": (ratio.sub(1).abs() > 0.2).float().mean(),
                    "advantage": adv.mean(),
                    "norm": norm,
                })
