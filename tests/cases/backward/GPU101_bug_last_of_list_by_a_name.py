"""The loss that was put last goes backward by a name of its own, and the list keeps all of them; or all go backward together."""

import torch


def train(model, loader, optimizer):
    losses = []
    for batch in loader:
        losses.append(model(batch.cuda()).sum())  # note: GPU101
        last = losses[-1]
        optimizer.zero_grad()
        last.backward()
        optimizer.step()
    print(torch.stack(losses))


def together(model, optimizer, batch):
    losses = []
    for part in batch.chunk(4):
        losses.append(model(part.cuda()).sum())  # maybe: GPU303
        last = losses[-1]
        print(last.item())
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()
