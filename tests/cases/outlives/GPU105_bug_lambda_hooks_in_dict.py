from collections import defaultdict

import torch
from torch import nn


class Recorder:
    def __init__(self, model: nn.Module):
        self.store = defaultdict(list)
        for name, m in model.named_modules():
            if isinstance(m, nn.ReLU):
                m.register_forward_hook(self.make(name))  # expect: GPU105@h

    def make(self, name):
        def hook(module, args, out):
            self.store[name].append(out.cpu())  # expect: GPU105@h

        return hook


def sparsity(model, loader):
    rec = Recorder(model.cuda())
    model.eval()
    for x, _ in loader:
        model(x.cuda())  # expect: GPU201
    return {k: (torch.cat(v) == 0).float().mean().item() for k, v in rec.store.items()}
