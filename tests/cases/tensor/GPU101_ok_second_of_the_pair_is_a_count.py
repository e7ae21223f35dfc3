"""A loss and a count of labels: the annotation of another file says that the second is an int."""
# file: loop.py
import torch

from objective import masked_loss


def run(net: torch.nn.Module, loader, opt):
    net.cuda()
    labels, history = 0, []
    for ids, mask in loader:
        pair = masked_loss(net, ids.cuda(), mask.cuda())
        opt.zero_grad()
        pair[0].backward()
        opt.step()
        labels += pair[1]
        history.append(pair[1])
    print(labels, max(history))
# file: objective.py
from typing import Tuple

import torch
import torch.nn.functional as F


def masked_loss(net, ids: torch.Tensor, mask: torch.Tensor) -> Tuple[torch.Tensor, int]:
    logits = net(ids.masked_fill(mask, 3))
    return F.cross_entropy(logits[mask], ids[mask]), int(mask.sum())
