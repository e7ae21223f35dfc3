"""The collector runs at the head of a function that is one epoch, called for each of them by another file."""
# file: run.py
import torch

from ranking import train_epoch


def main(build, loader, epochs):
    net = build().cuda()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-5)
    for epoch in range(epochs):
        print(epoch, train_epoch(net, loader, optimizer))
# file: ranking.py
import gc

import torch
import torch.nn.functional as F


def train_epoch(net, loader, optimizer):
    gc.collect()
    torch.cuda.empty_cache()
    net.train()
    total = 0.0
    for better, worse in loader:
        margin = net(better.cuda()) - net(worse.cuda())
        loss = -F.logsigmoid(margin).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)
