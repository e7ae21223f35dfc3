"""The evaluation stands in such a context as well, and nothing goes backward in it."""

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from torch import nn
from torch.distributed.optim import DistributedOptimizer


def run(net: nn.Module, loader, held_out):
    net.cuda()
    opt = DistributedOptimizer(torch.optim.SGD, [rpc.RRef(p) for p in net.parameters()], lr=0.05)
    for x, y in loader:
        with dist_autograd.context() as context_id:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            dist_autograd.backward(context_id, [loss])
            opt.step(context_id)
    evaluate(net, held_out)


def evaluate(net: nn.Module, held_out):
    net.eval()
    hits = 0
    for x, y in held_out:
        with dist_autograd.context():
            hits += (net(x.cuda()).argmax(1).cpu() == y).sum().item()  # expect: GPU201
    print(hits / len(held_out.dataset))
