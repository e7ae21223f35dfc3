"""The same probes keep a cut copy on the host."""
# file: pretrain.py
import torch
from torch import nn

from probing import attach, spectra


def pretrain(blocks: nn.ModuleList, head: nn.Module, loader):
    net = nn.Sequential(*blocks, head).cuda()
    store = attach(net)
    opt = torch.optim.AdamW(net.parameters(), 3e-4)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    spectra(store)
# file: probing.py
from collections import defaultdict
from functools import partial

import torch


def _note(store, name, module, args, output):
    store[name].append(output.detach().mean(1).cpu())


def attach(net):
    store = defaultdict(list)
    for name, child in net.named_children():
        child.register_forward_hook(partial(_note, store, name))
    return store


def spectra(store):
    for name, rows in store.items():
        print(name, torch.linalg.svdvals(torch.cat(rows).float())[:5].tolist())
