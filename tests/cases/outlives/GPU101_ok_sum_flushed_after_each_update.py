"""The sum of a few micro-batches' losses is read as a number at each update and starts anew."""

import torch
import torch.nn.functional as F


def train(net: torch.nn.Module, loader, accumulate=4):
    net.cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    window = 0.0
    for step, (x, y) in enumerate(loader, 1):
        loss = F.cross_entropy(net(x.cuda()), y.cuda()) / accumulate
        loss.backward()
        window += loss
        if step % accumulate == 0:
            opt.step()
            opt.zero_grad()
            print(step, window.item())
            window = 0.0
