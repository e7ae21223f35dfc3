"""Once an epoch, before data that was gathered for minutes goes through the network several times."""

import torch
from torch import nn


def train(model: nn.Module, head: nn.Module, sample, optimizer, epochs, repeat):
    for epoch in range(epochs):
        data = sample()
        model.train()
        torch.cuda.empty_cache()
        for _ in range(repeat):
            for inputs, labels in data:
                loss = nn.functional.cross_entropy(head(model(inputs.cuda())), labels.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, head(model(data[0][0].cuda())).argmax(1).cpu())
