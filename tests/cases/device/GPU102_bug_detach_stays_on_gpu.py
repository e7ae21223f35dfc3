import torch
from torch import nn


def train_and_collect(model, loader, opt, device):
    outs, ys = [], []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        outs.append(out.detach())  # low: GPU102
        ys.append(y)  # maybe: GPU102
    from sklearn.metrics import roc_auc_score

    prob = torch.cat(outs).softmax(1)[:, 1].cpu().numpy()
    return roc_auc_score(torch.cat(ys).cpu().numpy(), prob)
