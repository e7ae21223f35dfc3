import torch
from torch import nn


def train(model, optimizer, loader):
    best = float("inf")
    for epoch in range(100):
        for step, (inputs, targets) in enumerate(loader):
            logits = model(inputs.cuda())
            loss = nn.functional.cross_entropy(logits, targets.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            value = loss.item()
            if value < best:
                best = value
                torch.save(model.state_dict(), "best.pt")
            if step % 500 == 0:
                torch.save(model.state_dict(), "last.pt")
            torch.save({"loss": value}, "figures.pt")
