import torch
from torch import nn


class EMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {k: p.clone().detach() for k, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for k, p in model.named_parameters():
            self.shadow[k] = self.decay * self.shadow[k] + (1 - self.decay) * p


def soft_update(net, target, tau):
    for p, tp in zip(net.parameters(), target.parameters()):
        tp.data.copy_(tau * p.data + (1 - tau) * tp.data)


def train(model, target, loader, opt):
    ema = EMA(model.cuda())
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
        soft_update(model, target, 0.005)
