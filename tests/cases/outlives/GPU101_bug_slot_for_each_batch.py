import torch
from torch import nn
from torch.nn import functional as F


class Agent:
    def __init__(self, width):
        self.critic = nn.Linear(width, 1).cuda()
        self.optimizer = torch.optim.Adam(self.critic.parameters())

    def epoch(self, loader):
        info = {}
        for i, (x, wanted) in enumerate(loader):
            loss = F.mse_loss(self.critic(x), wanted)
            info[f"batch{i}"] = loss  # expect: GPU101
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return {name: value.item() for name, value in info.items()}
