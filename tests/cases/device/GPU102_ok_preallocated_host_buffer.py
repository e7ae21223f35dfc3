import torch
from torch import nn


@torch.inference_mode()
def embed(model: nn.Module, dataset, dim, bs=256):
    model.cuda().eval()
    out = torch.empty(len(dataset), dim)
    loader = torch.utils.data.DataLoader(dataset, bs)
    k = 0
    for x in loader:
        z = model(x.cuda(non_blocking=True))
        out[k : k + z.size(0)] = z.cpu()
        k += z.size(0)
    return out
