import torch
from torch import nn


def meta_train(opt_net, make_task, n_outer, horizon=100, cut=20):
    """Learning to learn by gradient descent: the state is unrolled and cut every `cut` steps on purpose."""
    meta = torch.optim.Adam(opt_net.parameters(), 1e-3)
    for _ in range(n_outer):
        task = make_task().cuda()
        theta = task.initial_point().requires_grad_(True)
        state = opt_net.initial_state(theta.numel())
        window = 0.0
        for k in range(1, horizon + 1):
            loss = task(theta)
            window = window + loss
            (g,) = torch.autograd.grad(loss, theta, retain_graph=True)
            update, state = opt_net(g.detach().view(-1, 1), state)
            theta = theta + update.view_as(theta)
            if k % cut == 0:
                meta.zero_grad()
                window.backward()
                meta.step()
                theta = theta.detach().requires_grad_(True)
                state = tuple(s.detach() for s in state)
                window = 0.0
