"""Batches deleted, the cache emptied every 5 and waited for every 20, in training and in evaluation; at an epoch's end that is right."""

import gc

import torch
from torch import nn


def one_epoch(network: nn.Module, loader, optimizer, criterion):
    network.train()
    for number, batch in enumerate(loader):
        pictures, classes = batch[0].cuda(), batch[1].cuda()
        loss = criterion(network(pictures), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del batch, loss
        if number % 5 == 0:
            torch.cuda.empty_cache()  # note: GPU501
        if number % 20 == 0:
            torch.cuda.synchronize()  # note: GPU503


def accuracy(network: nn.Module, loader):
    network.eval()
    right = 0
    with torch.no_grad():
        for number, batch in enumerate(loader):
            right += (network(batch[0].cuda()).argmax(1) == batch[1].cuda()).sum().item()
            del batch
            if number % 5 == 0:
                torch.cuda.empty_cache()  # note: GPU501
    return right / len(loader.dataset)


def main(network, training, validation):
    torch.cuda.empty_cache()  # note: GPU405
    gc.collect()
    network.cuda()
    optimizer = torch.optim.Adam(network.parameters())
    for epoch in range(30):
        one_epoch(network, training, optimizer, nn.CrossEntropyLoss())
        reached = accuracy(network, validation)
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        print(epoch, reached, torch.cuda.max_memory_allocated() / 2**30, torch.cuda.memory_reserved() / 2**30)
        torch.cuda.reset_peak_memory_stats()
        torch.save(network.state_dict(), "last.pt")
        torch.cuda.empty_cache()
