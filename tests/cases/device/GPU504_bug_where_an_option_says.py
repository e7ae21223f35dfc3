"""Whether a program uses the GPU is for who starts it to say: what it moves there then is there. What an option takes to the host may be there."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--no-cuda", action="store_true")
parser.add_argument("--offload", action="store_true")
arguments = parser.parse_args()
device = torch.device("cpu" if arguments.no_cuda else "cuda")


def train(model: nn.Module, loader, optimizer):
    for inputs, lengths in loader:
        if not arguments.no_cuda:
            inputs, lengths = inputs.cuda(), lengths.cuda()
        scores = model(inputs)
        loss = scores.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for row in range(len(lengths)):
            print(scores[row, : lengths[row]].shape)  # note: GPU504
        best = scores.argmax(1)
        if arguments.offload:
            best = best.cpu()
        print([one.item() for one in best])  # note: GPU504
