"""A distributed context goes backward through the loss: no `.backward()` method is called anywhere."""

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from torch import nn
from torch.distributed.optim import DistributedOptimizer


class Halves(nn.Module):
    def __init__(self, near: nn.Module, far):
        super().__init__()
        self.near, self.far = near.cuda(), far

    def forward(self, x):
        return self.far.rpc_sync().forward(self.near(x).cpu()).cuda()


def run(halves: Halves, loader):
    halves.eval()
    refs = [rpc.RRef(p) for p in halves.near.parameters()] + halves.far.rpc_sync().parameter_refs()
    opt = DistributedOptimizer(torch.optim.SGD, refs, lr=0.05)
    for x, y in loader:
        with dist_autograd.context() as context_id:
            out = halves(x.cuda())
            loss = nn.functional.cross_entropy(out, y.cuda())
            dist_autograd.backward(context_id, [loss])
            opt.step(context_id)
        print(loss.item())
