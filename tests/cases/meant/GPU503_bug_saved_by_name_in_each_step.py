"""Weights saved in every step, the arguments by name; what stars hold is not seen."""

import torch

net = torch.nn.Linear(4096, 4096).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def train(loader):
    for x, y in loader:
        opt.zero_grad()
        ((net(x.cuda()) - y.cuda()) ** 2).mean().backward()
        opt.step()
        torch.save(f="a.pt", obj=net.state_dict())  # expect: GPU503
        torch.save(*[net.state_dict(), "b.pt"])
