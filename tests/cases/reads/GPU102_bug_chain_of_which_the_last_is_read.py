import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 3, 3, padding=1)).cuda().eval()


@torch.no_grad()
def joined(shape, steps):
    x = torch.randn(shape, device="cuda")
    states = []
    for _ in range(steps):
        x = x - 0.1 * net(x)
        states.append(x)  # note: GPU102
    print(len(states))
    return torch.stack(states)[-1]


def walk(score, x, steps):
    """What scores is given: neither a network nor a device is in sight."""
    trace = []
    with torch.no_grad():
        for t in range(steps):
            x = x + score(x, t) + torch.randn_like(x)
            trace.append(x)  # low: GPU102
    return x
