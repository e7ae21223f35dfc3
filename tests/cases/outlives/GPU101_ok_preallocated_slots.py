import numpy as np
import torch
import torch.nn.functional as F


def train(net, opt, batches, n_iter):
    losses = np.zeros(n_iter)
    buf = torch.zeros(4, device="cuda")
    for k in range(n_iter):
        x, y = batches[k % len(batches)]
        opt.zero_grad()
        loss = F.smooth_l1_loss(net(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        losses[k] = loss.item()
        with torch.no_grad():
            buf[0] += loss
            buf[1] += 1
    return losses, (buf[0] / buf[1]).item()
