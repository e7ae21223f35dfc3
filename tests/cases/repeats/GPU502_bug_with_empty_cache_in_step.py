import gc

import torch
from torch import nn


def train(seq2seq, loader, opt, device):
    crit = nn.CrossEntropyLoss(ignore_index=0)
    for src, tgt in loader:
        out = seq2seq(src.to(device), tgt.to(device))
        loss = crit(out.flatten(0, 1), tgt.to(device).flatten())  # maybe: GPU401
        opt.zero_grad()
        loss.backward()
        opt.step()
        del out, loss
        gc.collect()  # expect: GPU502
        torch.cuda.empty_cache()  # expect: GPU501
