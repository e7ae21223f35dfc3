import torch
import numpy as np
from torch import nn, optim


def fit(net, X, Y, bs=128, epochs=10):
    net = net.cuda()
    o = optim.AdamW(net.parameters())
    curve, total = [], 0.0
    for ep in range(epochs):
        perm = torch.randperm(len(X))
        for k in range(0, len(X), bs):
            idx = perm[k : k + bs]
            cost = nn.functional.mse_loss(net(X[idx].cuda()), Y[idx].cuda())
            o.zero_grad()
            cost.backward()
            o.step()
            curve.append(cost.detach().cpu().numpy())
            total += float(cost)
    return np.array(curve), total
