import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"  # expect: GPU601

import torch
from torch import nn


def main(loader):
    net = nn.LSTM(32, 512).cuda()
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        loss = net(x.cuda())[0].pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
