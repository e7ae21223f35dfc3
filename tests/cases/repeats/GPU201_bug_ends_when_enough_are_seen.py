"""The loop ends under a condition only, after as many batches as are asked for."""

import torch
from models import Flow


def measure(loader, path, wanted):
    flow = Flow()
    flow.load_state_dict(torch.load(path, map_location="cpu"))
    flow.cuda().eval()
    total = seen = 0
    for x, lengths in loader:
        total += flow(x.cuda(), lengths.cuda()).mean().item()  # expect: GPU201
        seen += 1
        if seen >= wanted:
            break
    return total / seen
