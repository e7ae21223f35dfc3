import math

import torch
import torch.nn.functional as F


@torch.no_grad()
def perplexity(lm, loader, vocab_size, device):
    lm.eval()
    nll, count = 0.0, 0
    for tokens in loader:
        tokens = tokens.to(device)
        logits = lm(tokens[:, :-1])
        nll += F.cross_entropy(logits.reshape(-1, vocab_size), tokens[:, 1:].reshape(-1), reduction="sum").item()  # maybe: GPU401
        count += tokens[:, 1:].numel()
    return math.exp(nll / count)
