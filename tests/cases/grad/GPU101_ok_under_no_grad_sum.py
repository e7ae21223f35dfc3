import torch
from torch import nn


@torch.no_grad()
def perplexity(lm, batches, device):
    lm.eval()
    nll = 0.0
    n_tok = torch.zeros((), device=device)
    for ids in batches:
        ids = ids.to(device)
        out = lm(ids, labels=ids)
        nll += out.loss * ids.numel()  # maybe: GPU401
        n_tok += ids.numel()
    return torch.exp(nll / n_tok).item()
