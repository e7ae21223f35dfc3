import random

import torch
from torch import nn


class DQNAgent:
    def __init__(self, n_obs, n_act, device="cuda"):
        self.q = nn.Sequential(nn.Linear(n_obs, 256), nn.ReLU(), nn.Linear(256, n_act)).to(device)
        self.target = nn.Sequential(nn.Linear(n_obs, 256), nn.ReLU(), nn.Linear(256, n_act)).to(device)
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters())
        self.n_act, self.device, self.eps = n_act, device, 0.1

    def select_action(self, obs):
        if random.random() < self.eps:
            return random.randrange(self.n_act)
        s = torch.as_tensor(obs, dtype=torch.float32, device=self.device).unsqueeze(0)
        values = self.q(s)  # low: GPU201
        return values.argmax(1).item()

    def update(self, s, a, r, s2, d):
        with torch.no_grad():
            y = r + 0.99 * (1 - d) * self.target(s2).max(1)[0]
        loss = nn.functional.mse_loss(self.q(s).gather(1, a[:, None])[:, 0], y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
