import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.affine = nn.Linear(n_obs, 128)
        self.action_head = nn.Linear(128, n_act)
        self.value_head = nn.Linear(128, 1)

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


class Agent:
    def __init__(self, n_obs, n_act, gamma=0.99):
        self.net = ActorCritic(n_obs, n_act).to("cuda")
        self.opt = torch.optim.Adam(self.net.parameters(), lr=3e-2)
        self.gamma = gamma
        self.saved, self.rewards = [], []

    def act(self, obs):
        probs, value = self.net(torch.as_tensor(obs, dtype=torch.float32, device="cuda"))
        m = Categorical(probs)
        a = m.sample()
        self.saved.append((m.log_prob(a), value))
        return a.item()

    def finish_episode(self):
        R, returns = 0.0, []
        for r in reversed(self.rewards):
            R = r + self.gamma * R
            returns.insert(0, R)
        returns = torch.tensor(returns, device="cuda")
        policy_losses, value_losses = [], []
        for (logp, value), G in zip(self.saved, returns):
            policy_losses.append(-logp * (G - value.detach().squeeze()))
            value_losses.append(F.smooth_l1_loss(value.squeeze(), G))
        self.opt.zero_grad()
        loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
        loss.backward()
        self.opt.step()
        del self.rewards[:]
        del self.saved[:]


def play(env, agent, episodes):
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, r, done, _ = env.step(agent.act(obs))
            agent.rewards.append(r)
        agent.finish_episode()
