"""In a rollout the cache is emptied right after something large is gone, and before another network runs: perhaps for that."""
import torch
from torch import nn


def train(policy: nn.Module, reference: nn.Module, loader, optimizer, size):
    for queries in loader:
        with torch.no_grad():
            queries = queries.cuda()
            figures = []
            for start in range(0, queries.shape[0], size):
                part = queries[start : start + size]
                logits = policy(part)
                likely = torch.log_softmax(logits, -1).amax(-1)
                del logits
                torch.cuda.empty_cache()  # low: GPU501
                figures.append((likely - reference(part).amax(-1)).mean(-1))
            wanted = torch.cat(figures)
        loss = (policy(queries).mean((1, 2)) - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # expect: GPU501
