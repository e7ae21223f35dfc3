"""The collector runs at the head of a function that is one batch, called for each of them by another file."""
# file: run.py
import torch

from ranking import train_pairs


def main(build, loader, epochs):
    net = build().cuda()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-5)
    for epoch in range(epochs):
        total = 0.0
        for better, worse in loader:
            total += train_pairs(net, better, worse, optimizer)
        print(epoch, total / len(loader))
# file: ranking.py
import gc

import torch.nn.functional as F


def train_pairs(net, better, worse, optimizer):
    gc.collect()  # expect: GPU502
    net.train()
    margin = net(better.cuda()) - net(worse.cuda())
    loss = -F.logsigmoid(margin).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
