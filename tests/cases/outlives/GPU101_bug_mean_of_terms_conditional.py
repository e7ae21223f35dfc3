import torch
from torch import nn


def train(model, dl, opt, cfg, device):
    ce = nn.CrossEntropyLoss()
    aux_total = 0
    for i, (x, y) in enumerate(dl):
        logits, aux = model(x.to(device))
        loss = ce(logits, y.to(device))
        if cfg.use_aux:
            loss = loss + cfg.aux_weight * aux
        opt.zero_grad()
        loss.backward()
        opt.step()
        if cfg.use_aux:
            aux_total += aux  # expect: GPU101
        if i % cfg.log_every == 0:
            print(i, loss.item(), float(aux_total) / (i + 1))
