import torch
from torch import optim
from torch.distributions import Categorical


def reinforce(policy, env, episodes, gamma=0.99):
    policy.cuda()
    opt = optim.Adam(policy.parameters(), lr=1e-2)
    for ep in range(episodes):
        obs, _ = env.reset()
        logps, rews, done = [], [], False
        while not done:
            d = Categorical(logits=policy(torch.as_tensor(obs).float().cuda()))
            a = d.sample()
            logps.append(d.log_prob(a))
            obs, r, term, trunc, _ = env.step(a.item())
            rews.append(r)
            done = term or trunc
        g, loss = 0.0, 0.0
        for lp, r in zip(reversed(logps), reversed(rews)):
            g = r + gamma * g
            loss = loss - lp * g
        opt.zero_grad()
        loss.backward()
        opt.step()
