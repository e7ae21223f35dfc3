"""The update goes backward through the values and log-probabilities of the rollout themselves."""

import torch
from torch import nn


class Agent:
    def __init__(self, net: nn.Module, envs, horizon=5):
        self.net, self.envs, self.horizon = net.cuda(), envs, horizon
        self.opt = torch.optim.RMSprop(net.parameters(), 7e-4)

    def rollout(self):
        steps, seen = [], self.envs.reset()
        for _ in range(self.horizon):
            seen = torch.as_tensor(seen, dtype=torch.float32).cuda()
            logits, value = self.net(seen)
            dist = torch.distributions.Categorical(logits=logits)
            action = dist.sample()
            nxt, reward, done, _ = self.envs.step(action.cpu().numpy())
            steps.append([dist.log_prob(action), dist.entropy(), value.squeeze(-1), torch.as_tensor(reward).cuda()])
            seen = nxt
        return [torch.stack(column) for column in zip(*steps)]

    def update(self):
        log_prob, entropy, value, reward = self.rollout()
        gain = reward.flip(0).cumsum(0).flip(0) - value
        loss = -(log_prob * gain.detach()).mean() + 0.5 * gain.pow(2).mean() - 0.01 * entropy.mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
