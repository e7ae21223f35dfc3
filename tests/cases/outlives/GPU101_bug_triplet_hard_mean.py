import torch
import torch.nn.functional as F
from torch import nn


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 32, 5)
        self.fc = nn.Linear(32 * 24 * 24, 64)

    def forward(self, x):
        return F.normalize(self.fc(torch.relu(self.conv(x)).flatten(1)))


net = Embedder().cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-4)
margin = 0.2


def epoch(triplets):
    dist_pos, dist_neg = [], []
    for a, p, n in triplets:
        ea, ep, en = net(a.cuda()), net(p.cuda()), net(n.cuda())
        dp = (ea - ep).pow(2).sum(1)
        dn = (ea - en).pow(2).sum(1)
        l = F.relu(dp - dn + margin).mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        dist_pos.append(dp.mean())  # expect: GPU101
        dist_neg.extend([dn.mean()])  # expect: GPU101
    return torch.stack(dist_pos).mean().item(), torch.stack(dist_neg).mean().item()
