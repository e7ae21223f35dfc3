import torch
from torch import nn
from torch.distributions import Normal


class Clipped(Normal):
    def __init__(self, loc, scale, top):
        super().__init__(loc, scale)
        self.top = top

    def draw(self):
        noise = torch.randn_like(self.mean) * self.stddev
        return torch.tanh(self.mean + noise) * self.top


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4096, 1024), nn.Linear(1024, 6))

    def forward(self, x):
        return Clipped(self.net(x), 0.1, 2.0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8192, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, x, a):
        return self.body(torch.cat([x.flatten(1), a], 1))


def train(loader):
    policy, critic = Policy().cuda(), Critic().cuda()
    opt_p = torch.optim.Adam(policy.parameters())
    opt_c = torch.optim.Adam(critic.parameters())
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        opt_c.zero_grad()
        loss_c = (critic(x, y) - 1).pow(2).mean()
        loss_c.backward()
        opt_c.step()

        opt_p.zero_grad()
        action = policy(x).draw()
        loss = -critic(x, action).mean()  # expect: GPU202
        loss.backward()
        opt_p.step()
