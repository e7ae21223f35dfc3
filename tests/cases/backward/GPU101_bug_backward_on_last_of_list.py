"""The loss goes straight into the history, and backward is called on the history's last entry."""

import torch


def fit(parameters, objective, limit=10_000, tolerance=1e-6):
    optimizer = torch.optim.LBFGS(parameters) if len(parameters) < 3 else torch.optim.Adam(parameters)
    history = []
    while len(history) < limit:
        optimizer.zero_grad()
        history.append(objective(*parameters))  # expect: GPU101
        history[-1].backward()
        optimizer.step()
        if len(history) > 1 and abs(history[-2] - history[-1]) < tolerance:
            break
    return [float(value) for value in history]
