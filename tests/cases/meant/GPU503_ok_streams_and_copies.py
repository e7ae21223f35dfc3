import torch
from torch import nn


def prefetching(net, loader, opt):
    side = torch.cuda.Stream()
    for x, y in loader:
        with torch.cuda.stream(side):
            x = x.cuda(non_blocking=True)
        torch.cuda.synchronize()
        loss = nn.functional.mse_loss(net(x), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def gather(net, loader, out):
    for i, x in enumerate(loader):
        out[i].copy_(net(x.cuda()), non_blocking=True)
        torch.cuda.synchronize()
        print(out[i].sum())
