"""The bar goes through the batches of an epoch: nobody reads a rate off it that the wait would mend."""

import torch
import torch.nn.functional as F
from tqdm import tqdm


def train(net, loader, opt):
    net.cuda()
    for x, y in tqdm(loader):
        opt.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        opt.step()
        torch.cuda.synchronize()  # expect: GPU503
