"""A gradient is read by a name of its own, and what is written into is its copy."""

import torch


def tune(weights, net, loader, lr):
    opt = torch.optim.SGD(weights, lr=lr)
    for x in loader:
        net(x.cuda()).mean().backward()
        for weight in weights:
            gradient = weight.grad.clone()
            gradient.add_(torch.randn_like(gradient))
            print(gradient.norm().item())
        opt.step()
        opt.zero_grad(set_to_none=False)  # expect: GPU304
