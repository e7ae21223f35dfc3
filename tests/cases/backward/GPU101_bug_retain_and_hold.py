import torch
from torch import nn


def solve_pde(u_net, points, boundary, iters=30000):
    opt = torch.optim.Adam(u_net.parameters(), lr=1e-3)
    crit = nn.MSELoss()
    residuals = []
    for i in range(iters):
        opt.zero_grad()
        u_b = u_net(boundary[:, :2].cuda())
        cost = crit(u_b, boundary[:, 2:].cuda())
        cost.backward(retain_graph=True)  # expect: GPU301
        opt.step()
        residuals.append(cost)  # expect: GPU101
        if i % 500 == 0:
            print(i, cost.item())
    return residuals
