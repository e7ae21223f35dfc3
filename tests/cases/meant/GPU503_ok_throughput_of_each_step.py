"""The caller, in another file, reads a clock on both sides of the step: the wait is part of the figure."""
# file: pretrain.py
import time

import torch

from stepping import train_step


def main(net, loader, opt):
    net.cuda()
    spent, seen = 0.0, 0
    for step, batch in enumerate(loader):
        began = time.time()
        loss = train_step(net, batch, opt)
        spent += time.time() - began
        seen += batch.numel()
        if step % 50 == 0:
            print(f"{step} {loss.item():.3f} {seen / spent:.0f} tokens/s")
# file: stepping.py
import torch
import torch.nn.functional as F


def train_step(net, batch, opt):
    batch = batch.cuda(non_blocking=True)
    loss = F.cross_entropy(net(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    torch.cuda.synchronize()
    return loss.detach()
