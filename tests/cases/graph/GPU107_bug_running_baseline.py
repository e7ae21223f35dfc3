import torch
from torch.distributions import Categorical


def reinforce(policy, critic, env, episodes, opt):
    baseline = torch.zeros((), device="cuda")
    for _ in range(episodes):
        obs = env.reset().cuda()
        d = Categorical(logits=policy(obs))
        a = d.sample()
        value = critic(obs).mean()
        baseline = 0.95 * baseline + 0.05 * value  # expect: GPU107|GPU101|GPU103
        r = env.step(a)
        loss = -(d.log_prob(a) * (r - baseline.detach())).mean() + (value - r).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
