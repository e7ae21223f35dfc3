"""The callers's clock is read at the two ends of an epoch; each of its steps waits all the same."""
# file: pretrain.py
import time

import torch

from stepping import train_step


def main(net, loader, opt, epochs):
    net.cuda()
    for epoch in range(epochs):
        began = time.time()
        total = torch.zeros((), device="cuda")
        for batch in loader:
            total += train_step(net, batch, opt)
        print(f"{epoch} {total.item() / len(loader):.3f} after {time.time() - began:.1f} s")
# file: stepping.py
import torch
import torch.nn.functional as F


def train_step(net, batch, opt):
    batch = batch.cuda(non_blocking=True)
    loss = F.cross_entropy(net(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    torch.cuda.synchronize()  # expect: GPU503
    return loss.detach()
