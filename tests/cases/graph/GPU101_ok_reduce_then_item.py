import torch
import torch.distributed as dist
import torch.nn.functional as F


def reduce_mean(tensor, world_size):
    rt = tensor.detach().clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)
    return rt / world_size


def train(model, loader, opt, local_rank, world_size):
    total, seen = 0.0, 0
    for x, y in loader:
        x = x.cuda(local_rank, non_blocking=True)
        y = y.cuda(local_rank, non_blocking=True)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        reduced = reduce_mean(loss, world_size)
        total += reduced.item() * x.size(0)
        seen += x.size(0)
    return total / seen
