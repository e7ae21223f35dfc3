"""The curve goes over the CPU, the total does not."""
import numpy as np
import torch

model = torch.nn.Linear(4, 1).cuda()
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def fit(loader):
    total = 0
    curve = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss  # expect: GPU101
        curve.append(loss.detach().cpu().numpy())
    return np.mean(curve), total
