"""Options by the name of an optimizer are none: they are asked for nothing that one has."""

import torch


def train(opt, net: torch.nn.Module, loader):
    net.cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=opt.lr, momentum=opt.momentum)
    optimizer.load_state_dict(torch.load(opt.resume, map_location="cpu"))
    for _ in range(opt.epochs):
        for x, y in loader:
            loss = opt.weight * torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
