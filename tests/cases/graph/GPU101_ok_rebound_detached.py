import torch
import torch.nn.functional as F


def fit_epoch(net, optimiser, batches, dev):
    epoch_loss = torch.zeros((), device=dev)
    for x, y in batches:
        x = x.to(dev)
        y = y.to(dev)
        optimiser.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimiser.step()
        loss = loss.detach()
        epoch_loss += loss * x.shape[0]
    return epoch_loss.item()
