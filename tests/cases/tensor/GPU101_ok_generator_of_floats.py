import torch
from torch import nn


def losses(model, loader, opt, crit):
    for x, y in loader:
        loss = crit(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield loss.item()


def main(model, loader):
    crit = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(model.parameters())
    total = 0.0
    seen = []
    for loss in losses(model, loader, opt, crit):
        total += loss
        seen.append(loss)
    print(total / len(seen))
