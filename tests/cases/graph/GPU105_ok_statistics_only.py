import torch
from torch import nn


class Stats:
    def __init__(self, model):
        self.means, self.shapes = {}, {}
        self.handles = [m.register_forward_hook(self.hook(n)) for n, m in model.named_modules()]

    def hook(self, name):
        def fn(module, args, out):
            if torch.is_tensor(out):
                self.means[name] = out.detach().mean().item()
                self.shapes[name] = tuple(out.shape)

        return fn

    def close(self):
        for h in self.handles:
            h.remove()


def train(model, loader, opt):
    stats = Stats(model.cuda())
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    stats.close()
