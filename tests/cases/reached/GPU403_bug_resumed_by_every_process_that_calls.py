# file: solver.py
"""An optimizer is resumed in a file that knows of no processes: the one that calls it starts several."""

import torch
from torch import optim


def make_optimizer(net, rate, resume=None):
    optimizer = optim.AdamW(net.parameters(), lr=rate)
    first = 0
    if resume is not None:
        last = torch.load(resume)  # expect: GPU403
        state = last.pop("optimizer")
        optimizer.load_state_dict(state)
        first = last.pop("epoch")
    return optimizer, first


def make_ok_alone(net, rate, resume):
    optimizer = optim.AdamW(net.parameters(), lr=rate)
    optimizer.load_state_dict(torch.load(resume)["optimizer"])
    return optimizer


# file: main.py
import torch
import torch.distributed as dist
from solver import make_ok_alone, make_optimizer
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import vit_l_16


def main(args, loader):
    dist.init_process_group("nccl")
    net = vit_l_16().cuda(args.local_rank)
    net = DistributedDataParallel(net, device_ids=[args.local_rank])
    optimizer, first = make_optimizer(net, args.rate, args.resume)
    for epoch in range(first, args.epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if args.local_rank == 0:
            state = {"net": net.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, "last.pth")


def look_again(args):
    net = vit_l_16().cuda()
    if args.local_rank == 0:
        return make_ok_alone(net, args.rate, args.resume)
    return None
