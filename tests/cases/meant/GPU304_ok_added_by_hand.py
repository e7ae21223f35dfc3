import torch


def tune(weights, net, loader, lr):
    masters = [weight.detach().float().clone().requires_grad_() for weight in weights]
    for master in masters:
        master.grad = torch.zeros_like(master)
    opt = torch.optim.SGD(masters, lr=lr)
    for x in loader:
        net(x.cuda()).mean().backward()
        for master, weight in zip(masters, weights):
            master.grad.add_(weight.grad.float())
            weight.grad = None
        opt.step()
        with torch.no_grad():
            for master, weight in zip(masters, weights):
                weight.copy_(master)
        opt.zero_grad(set_to_none=False)
