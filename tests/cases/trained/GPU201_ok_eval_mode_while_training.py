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
