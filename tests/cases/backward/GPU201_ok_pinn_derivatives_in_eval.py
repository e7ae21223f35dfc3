import torch


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]


def residual(net, x, t, nu=0.01):
    u = net(torch.cat([x, t], 1))
    u_x = derivative(u, x)
    return derivative(u, t) + u * u_x - nu * derivative(u_x, x)


def evaluate(net, points):
    net.eval()
    worst = 0.0
    for xt in points:
        x = xt[:, :1].cuda().requires_grad_(True)
        t = xt[:, 1:].cuda().requires_grad_(True)
        worst = max(worst, residual(net, x, t).abs().max().item())
    return worst
