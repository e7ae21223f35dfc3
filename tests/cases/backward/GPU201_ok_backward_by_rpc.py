import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from torch import nn
from torch.distributed.optim import DistributedOptimizer


def run_trainer(remote_table, loader):
    model = nn.Linear(16, 4).cuda()
    optimizer = DistributedOptimizer(torch.optim.SGD, [rpc.RRef(p) for p in model.parameters()], lr=0.05)
    for indices, target in loader:
        with dist_autograd.context() as context:
            out = model(remote_table.rpc_sync().forward(indices).cuda())
            loss = nn.functional.cross_entropy(out, target.cuda())
            dist_autograd.backward(context, [loss])
            optimizer.step(context)
            print(loss.item())
