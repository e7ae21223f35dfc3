import torch
from torch import nn
from torch.distributions import Normal


class Squashed(Normal):
    """Its samples are made of what the base class was given, so that a gradient comes back through them."""

    def __init__(self, mean, scale, bound):
        super().__init__(mean, scale)
        self.bound = bound

    def draw(self):
        return torch.tanh(self.mean + torch.randn_like(self.mean)) * self.bound


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 256, 4, 2), nn.ReLU(), nn.Conv2d(256, 512, 4, 2), nn.Flatten(), nn.Linear(512, 4))

    def forward(self, seen):
        return Squashed(self.body(seen), 0.1, 2.0)


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4096, 2048), nn.ReLU(), nn.Linear(2048, 1))

    def forward(self, seen, action):
        return self.body(torch.cat([seen.flatten(1), action], 1))


def train(loader):
    policy, judge = Policy().cuda(), Judge().cuda()
    ours = torch.optim.Adam(policy.parameters())
    theirs = torch.optim.Adam(judge.parameters())
    for seen, action, wanted in loader:
        theirs.zero_grad()
        nn.functional.mse_loss(judge(seen.cuda(), action.cuda()), wanted.cuda()).backward()
        theirs.step()

        ours.zero_grad()
        (-judge(seen.cuda(), policy(seen.cuda()).draw()).mean()).backward()
        ours.step()
