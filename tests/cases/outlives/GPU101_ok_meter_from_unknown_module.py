import torch
from torch import nn

from utils.misc import AverageMeter, ProgressMeter


def train(loader, model, opt, epoch):
    losses = AverageMeter("Loss", ":.4e")
    progress = ProgressMeter(len(loader), [losses], prefix=f"Epoch [{epoch}]")
    crit = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = crit(model(x.cuda()), y.cuda())
        losses.update(loss.detach(), x.size(0))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 10 == 0:
            progress.display(i)
