import torch
import torch.nn.functional as F
from torch import nn


class MultiTask(nn.Module):
    def __init__(self, dim, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(dim, 512), nn.GELU())
        self.heads = nn.ModuleDict({t: nn.Linear(512, n) for t, n in tasks.items()})

    def forward(self, x):
        h = self.trunk(x)
        return {t: head(h) for t, head in self.heads.items()}


def train(net, loader, tasks, device):
    opt = torch.optim.AdamW(net.parameters())
    for x, targets in loader:
        outs = net(x.to(device))
        loss = 0
        for t in tasks:
            loss += F.cross_entropy(outs[t], targets[t].to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
