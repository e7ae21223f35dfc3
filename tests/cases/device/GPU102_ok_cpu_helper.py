import torch
from torch import nn


def to_host(obj):
    if torch.is_tensor(obj):
        return obj.detach().cpu()
    if isinstance(obj, dict):
        return {k: to_host(v) for k, v in obj.items()}
    return type(obj)(to_host(v) for v in obj)


@torch.no_grad()
def run(model: nn.Module, loader):
    model.cuda().eval()
    results = []
    for x in loader:
        results.append(to_host(model(x.cuda())))
    return results
