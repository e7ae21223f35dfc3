"""A sampler keeps what each step has given, and hands out the last one alone."""

import torch


@torch.no_grad()
def sample(net, schedule, shape):
    x = torch.randn(shape, device="cuda")
    path = [x]

    def step(x, t):
        noise = net(x, t)
        return x - schedule.rate(t) * noise + torch.randn_like(x)

    for t in reversed(range(schedule.steps)):
        x = step(x, t)
        path.append(x)  # note: GPU102
    return x.clamp(-1, 1)


@torch.no_grad()
def sample_ok_path_is_read(net, schedule, shape):
    x = torch.randn(shape, device="cuda")
    path = [x]
    for t in reversed(range(schedule.steps)):
        x = x - schedule.rate(t) * net(x, t) + torch.randn_like(x)
        path.append(x)
    return x, path[len(path) // 2]


@torch.no_grad()
def sample_ok_a_function_within_reads_it(net, schedule, shape):
    x = torch.randn(shape, device="cuda")
    path = [x]

    def before():
        return path[-1]

    for t in reversed(range(schedule.steps)):
        x = before() - schedule.rate(t) * net(x, t) + torch.randn_like(x)
        path.append(x)
    return x


@torch.no_grad()
def sample_ok_numbers(net, schedule, shape):
    x = torch.randn(shape, device="cuda")
    rates = []
    for t in reversed(range(schedule.steps)):
        x = x - schedule.rate(t) * net(x, t) + torch.randn_like(x)
        rates.append(x.mean().item())
    return x
