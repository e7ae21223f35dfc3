import torch
from torch import nn


class Collector:
    def __init__(self, env, policy):
        self.env, self.policy = env, policy

    @torch.no_grad()
    def collect(self, n):
        return [self.env.step(self.policy(self.env.obs.cuda()).argmax().item()) for _ in range(n)]


def train(policy, env, opt, iters):
    gc = Collector(env, policy)
    for _ in range(iters):
        batch = gc.collect(128)
        obs, act, adv = (torch.stack(t).cuda() for t in zip(*batch))
        logp = policy(obs).log_softmax(-1).gather(1, act[:, None])[:, 0]
        loss = -(logp * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
