import torch
from torch.nn import functional as F


def run_epoch(net, loader, opt=None, device="cuda"):
    is_train = opt is not None
    torch.set_grad_enabled(is_train)
    net.train(is_train)
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(net(x.to(device)), y.to(device))
        if is_train:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item()
    torch.set_grad_enabled(True)
    return total / len(loader)
