import torch
from torch import nn


def search(model, x, y, iters, device):
    x, y = x.to(device), y.to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    best = float("inf")
    best_pred = None
    for i in range(iters):
        pred = model(x)
        loss = nn.functional.mse_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if loss < best:
            best = loss
            best_pred = pred.detach()
    return best.item(), best_pred
