"""A tensor is copied by `.cpu()`: what the name holds stays on the GPU until it is deleted."""

import torch


def scores(net, batches):
    found = []
    with torch.no_grad():
        for x in batches:
            out = net(x.cuda()).to("cuda")
            found.append(out.cpu())
            torch.cuda.empty_cache()  # note: GPU405  # note: GPU501
            del out
    return found
