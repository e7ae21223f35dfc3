"""A flag around the loop that chooses what to do, not how frugally."""

import torch
from torch import nn


def main(args, net: nn.Module, loader, opt):
    if args.train:
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            torch.cuda.empty_cache()  # expect: GPU501
    else:
        net.load_state_dict(torch.load(args.path, map_location="cpu"))
