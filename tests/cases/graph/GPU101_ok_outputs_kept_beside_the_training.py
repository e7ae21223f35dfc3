"""The outputs are kept without their graph, on the host."""

import torch
from sklearn.metrics import roc_auc_score
from torch import nn


def run_epoch(tower: nn.Module, loader, optimizer, schedule):
    tower.cuda().train()
    said, truth = [], []
    for users, items, clicked in loader:
        optimizer.zero_grad(set_to_none=True)
        logit = tower(users.cuda(), items.cuda())
        loss = nn.functional.binary_cross_entropy_with_logits(logit, clicked.float().cuda())
        loss.backward()
        optimizer.step()
        schedule.step()
        said.append(logit.data.cpu())
        truth.append(clicked)
    return roc_auc_score(torch.cat(truth).numpy(), torch.cat(said).numpy())
