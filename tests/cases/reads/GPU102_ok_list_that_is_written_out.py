"""A sampler keeps what each step has given on the host, and hands it out."""

import torch


@torch.no_grad()
def sample(net, schedule, shape):
    x = torch.randn(shape, device="cuda")
    path = []
    for t in reversed(range(schedule.steps)):
        x = x - schedule.rate(t) * net(x, t) + torch.randn_like(x)
        path.append(x.cpu())
    torch.save(path, "path.pt")
    return x.clamp(-1, 1)


@torch.no_grad()
def last_of(net, schedule, shape):
    x = torch.randn(shape, device="cuda")
    path = [x]
    for t in reversed(range(schedule.steps)):
        x = path.pop()
        path.append(x - schedule.rate(t) * net(x, t) + torch.randn_like(x))
    return path[0]
