"""Cleaned at the start, between training and evaluation, and behind a checkpoint: a few times a run, where it costs nothing."""

import gc

import torch
from torch import nn


def clear():
    gc.collect()
    torch.cuda.empty_cache()


def evaluate(network: nn.Module, loader):
    network.eval()
    with torch.no_grad():
        return sum(network(batch.cuda()).mean().item() for batch in loader)


def main(network: nn.Module, training, validation, card):
    clear()
    network.to(card)
    optimizer = torch.optim.AdamW(network.parameters())
    for epoch in range(20):
        network.train()
        for batch in training:
            with torch.cuda.device(card):
                loss = network(batch.to(card)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        clear()
        print(epoch, evaluate(network, validation))
        clear()
        torch.save(network.state_dict(), "last.pt")
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
