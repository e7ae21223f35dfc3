import torch
import torch.nn.functional as F


def epoch(net, opt, it, k):
    avg = None
    for _ in range(k):
        x, y = next(it)
        loss = F.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg = loss.detach() if avg is None else 0.98 * avg + 0.02 * loss.detach()
    return avg.item()
