import torch
from torch import nn


def linear_probe(backbone, head, loader, epochs):
    backbone.eval()
    for p in backbone.parameters():
        p.requires_grad_(False)
    head.cuda()
    opt = torch.optim.SGD(head.parameters(), 0.1)
    for _ in range(epochs):
        for x, y in loader:
            logits = head(backbone(x.cuda()))
            loss = nn.functional.cross_entropy(logits, y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()


def finetune_frozen_bn(net, loader, opt):
    net.eval()
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
        opt.step()


def fisher(net, loader):
    net.eval()
    diag = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
    for x, y in loader:
        net.zero_grad()
        nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
        for n, p in net.named_parameters():
            diag[n] += p.grad.detach() ** 2
    return {n: d / len(loader) for n, d in diag.items()}
