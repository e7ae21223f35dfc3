import torch
from torch import cuda


@torch.no_grad()
def test(net, loader, device):
    net.eval()
    hits = 0
    for x, y in loader:
        out = net(x.to(device))
        cuda.synchronize(device)  # note: GPU503
        hits += (out.argmax(1) == y.to(device)).sum()
    return hits.item()
