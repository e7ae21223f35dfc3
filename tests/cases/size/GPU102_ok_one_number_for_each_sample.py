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


@torch.no_grad()
def confidences(net: nn.Module, loader):
    net.cuda().eval()
    sure, first = [], []
    for x in loader:
        p = net(x.cuda()).softmax(1)
        sure.append(p.max(1)[0])
        first.append(net(x.cuda()).softmax(-1)[:, 1])
    return torch.cat(sure).cpu(), torch.cat(first).cpu()
