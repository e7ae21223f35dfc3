"""Two models in each round, and one list for all rounds."""
import torch


def compare(first, second, optimizers, batches):
    losses = []
    for batch in batches:
        for model, optimizer in ((first, optimizers[0]), (second, optimizers[1])):
            optimizer.zero_grad()
            losses.append(model(batch).sum())  # expect: GPU101
            losses[-1].backward()
            optimizer.step()
    print(torch.stack(losses))
