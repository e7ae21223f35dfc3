import torch
import torch.nn.functional as F


def train(net, loader, opt, weights):
    for x, targets in loader:
        preds = net(x.cuda())
        loss = 0
        for p, t, w in zip(preds, targets, weights):
            t = F.interpolate(t.cuda(), size=p.shape[-2:])
            loss += w * F.binary_cross_entropy_with_logits(p, t)
        opt.zero_grad()
        loss.backward()
        opt.step()
