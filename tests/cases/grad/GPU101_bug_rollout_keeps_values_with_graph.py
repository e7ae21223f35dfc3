"""Each step's value and log-probability go into the rollout with their graphs; the update reads their data and computes anew."""

import torch
from torch import nn


class Agent:
    def __init__(self, net: nn.Module, envs, horizon=512):
        self.net, self.envs, self.horizon = net.cuda(), envs, horizon
        self.opt = torch.optim.Adam(net.parameters(), 7e-4)

    def rollout(self):
        steps, seen = [], self.envs.reset()
        for _ in range(self.horizon):
            seen = torch.as_tensor(seen, dtype=torch.float32).cuda()
            logits, value = self.net(seen)  # note: GPU101|GPU201@r
            dist = torch.distributions.Categorical(logits=logits)
            action = dist.sample()
            nxt, reward, done, _ = self.envs.step(action.cpu().numpy())
            steps.append([seen, action, dist.log_prob(action), value, torch.as_tensor(reward).cuda()])  # expect: GPU101|GPU201@r
            seen = nxt
        return [torch.stack(column).data for column in zip(*steps)]

    def update(self):
        seen, action, old, value, reward = self.rollout()
        gain = reward.flip(0).cumsum(0).flip(0) - value.squeeze(-1)
        logits, new_value = self.net(seen.flatten(0, 1))
        dist = torch.distributions.Categorical(logits=logits)
        ratio = (dist.log_prob(action.flatten()) - old.flatten()).exp()
        loss = -(ratio * gain.flatten()).mean() + (new_value.squeeze(-1) - value.flatten()).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
