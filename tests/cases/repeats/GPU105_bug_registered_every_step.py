import torch
from torch import nn


def train(model, loader, opt):
    crit = nn.CrossEntropyLoss()
    for x, y in loader:
        feats = {}
        model.backbone.register_forward_hook(lambda m, i, o: feats.update(z=o))  # expect: GPU105
        out = model(x.cuda())
        loss = crit(out, y.cuda()) + 1e-3 * feats["z"].pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
