import torch
from torch import nn


@torch.no_grad()
def scores(judge: nn.Module, loader):
    judge.cuda().eval()
    left, right = [], []
    for a, b in loader:
        left.append(judge(a.cuda()).reshape(-1, 1))
        first = judge(b.cuda())
        right.append(first)
    return torch.cat(left).cpu().numpy(), torch.cat(right, dim=0).squeeze(1).cpu().numpy()
