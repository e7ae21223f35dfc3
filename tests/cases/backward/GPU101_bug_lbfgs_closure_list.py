import torch
from torch import nn, optim


def fit_pinn(net: nn.Module, x_f, x_b, u_b, max_iter=5000):
    net.cuda()
    x_f = x_f.cuda().requires_grad_(True)
    x_b, u_b = x_b.cuda(), u_b.cuda()
    lbfgs = optim.LBFGS(net.parameters(), max_iter=max_iter, line_search_fn="strong_wolfe")
    trace = []

    def closure():
        lbfgs.zero_grad()
        u = net(x_f)
        du = torch.autograd.grad(u.sum(), x_f, create_graph=True)[0]
        loss = (du**2).mean() + nn.functional.mse_loss(net(x_b), u_b)
        loss.backward()
        trace.append(loss)  # expect: GPU101
        return loss

    lbfgs.step(closure)
    return [t.item() for t in trace]
