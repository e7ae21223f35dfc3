"""The list is extended with a tensor: one view for each sample of each batch."""

import numpy as np
import torch


@torch.no_grad()
def gather(net, loader):
    net.cuda().eval()
    vectors, owners = [], []
    for pictures, who in loader:
        vectors.append(net(pictures.cuda()).cpu())
        owners.extend(who)  # low: GPU102
    return torch.cat(vectors), np.asarray(owners)
