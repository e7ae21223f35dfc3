"""A flow whose forward is given the optimizer, goes backward and steps: what it gives back are numbers to look at."""

# file: networks.py
import torch
from torch import nn


class Flow(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))

    def optimizer(self, rate):
        return torch.optim.Adam(self.parameters(), rate)

    def forward(self, x, optimizer, step):
        optimizer.zero_grad()
        loss = (self.layers(x) - x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "step": step}


# file: train.py
import torch.distributed as dist
from networks import Flow


def wrapped(net, gpu):
    return net.cuda(gpu)


def main(args, loader):
    net = wrapped(Flow(args.width), args.gpu) if dist.is_initialized() else args.make()
    optimizer = net.optimizer(1e-3)
    total = 0.0
    for step, x in enumerate(loader):
        net.train()
        out = net(x.cuda(), optimizer, step)  # maybe: GPU201
        total += out["loss"]
    print(total)


main(None, [])
