"""A kit of one's own: settings that come too late and against each other, helpers that free nothing, recovery where all is held."""

import gc
import os

import torch
from torch import nn

torch.ones(1, device="cuda")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = (
    "expandable_segments:True,max_split_size_mb:128"  # expect: GPU601, GPU602
)
os.environ["CUDA_VISIBLE_DEVICES"] = "0"  # expect: GPU602


def clean_up_model(model):
    del model  # note: GPU405
    gc.collect()
    torch.cuda.empty_cache()


def step(network: nn.Module, batch, optimizer):
    optimizer.zero_grad()
    network(batch.cuda()).mean().backward()
    optimizer.step()


def train(network, loader, optimizer):
    for batch in loader:
        try:
            step(network, batch, optimizer)
        except torch.cuda.OutOfMemoryError:
            gc.collect()  # expect: GPU402
            torch.cuda.empty_cache()
            step(network, batch[: len(batch) // 2], optimizer)
    clean_up_model(network)
