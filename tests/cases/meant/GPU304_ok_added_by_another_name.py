"""A gradient that is written into goes by a name of its own."""

import torch


def tune(weights, net, loader, lr):
    opt = torch.optim.SGD(weights, lr=lr)
    for x in loader:
        net(x.cuda()).mean().backward()
        for weight in weights:
            gradient = weight.grad
            gradient.add_(torch.randn_like(gradient))
        opt.step()
        opt.zero_grad(set_to_none=False)
