import gc

import optuna
import torch
from torch import nn


def objective(trial):
    width = trial.suggest_int("width", 32, 1024)
    net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 1)).cuda()
    opt = torch.optim.Adam(net.parameters(), trial.suggest_float("lr", 1e-5, 1e-1, log=True))
    for _ in range(200):
        x = torch.randn(256, 64, device="cuda")
        loss = (net(x)[:, 0] - x.sum(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    value = loss.item()
    del net, opt, loss
    gc.collect()
    torch.cuda.empty_cache()
    return value


optuna.create_study().optimize(objective, n_trials=50)
