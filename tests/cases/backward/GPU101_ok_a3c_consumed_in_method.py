import torch
from torch import nn


class A2C:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.opt = torch.optim.RMSprop(net.parameters(), 7e-4)
        self.reset()

    def reset(self):
        self.logps, self.values, self.rewards, self.entropy = [], [], [], 0.0

    def step(self, obs, env):
        logits, v = self.net(obs.cuda())
        d = torch.distributions.Categorical(logits=logits)
        a = d.sample()
        self.entropy += d.entropy().mean()
        self.logps.append(d.log_prob(a))
        self.values.append(v.squeeze(-1))
        obs, r = env.step(a.cpu())
        self.rewards.append(r.cuda())
        return obs

    def learn(self, last_value):
        R, loss = last_value.detach(), 0.0
        for lp, v, r in zip(self.logps[::-1], self.values[::-1], self.rewards[::-1]):
            R = r + 0.99 * R
            adv = R - v
            loss = loss + 0.5 * adv.pow(2).mean() - (lp * adv.detach()).mean()
        self.opt.zero_grad()
        (loss - 0.01 * self.entropy).backward()
        self.opt.step()
        self.reset()


def train(agent, env, updates, horizon=5):
    obs = env.reset()
    for _ in range(updates):
        for _ in range(horizon):
            obs = agent.step(obs, env)
        with torch.no_grad():
            _, v = agent.net(obs.cuda())
        agent.learn(v.squeeze(-1))
