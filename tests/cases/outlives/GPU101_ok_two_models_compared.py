"""The list starts anew in each iteration and takes two losses: all its rounds stand in the text."""
import torch


def compare(first, second, optimizers, batches):
    for batch in batches:
        losses = []
        for model, optimizer in ((first, optimizers[0]), (second, optimizers[1])):
            optimizer.zero_grad()
            losses.append(model(batch).sum())
            losses[-1].backward()
            optimizer.step()
        print(torch.stack(losses))
