"""`np.trace` measures an angle; no network is exported here."""

import numpy as np
import torch


def validate(net, loader, estimate):
    net.cuda().eval()
    errors = []
    for a, b, wanted in loader:
        first = net(a.cuda())  # expect: GPU201
        second = net(b.cuda())
        found = estimate(first.detach().cpu().numpy(), second.detach().cpu().numpy())
        errors.append(np.arccos((np.trace(found[:3, :3].T @ wanted) - 1) / 2))
    return np.mean(errors)
