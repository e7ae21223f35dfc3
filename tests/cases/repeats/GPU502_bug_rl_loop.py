import gc

import torch
from torch import nn


def optimise(q, target, memory, opt, steps, device):
    for step in range(steps):
        s, a, r, s2, done = (t.to(device) for t in memory.sample(128))
        with torch.no_grad():
            y = r + 0.99 * (1 - done) * target(s2).amax(1)
        loss = nn.functional.huber_loss(q(s).gather(1, a).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        _ = gc.collect()  # expect: GPU502
        if step % 1000 == 0:
            target.load_state_dict(q.state_dict())
