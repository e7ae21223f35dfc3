"""The loss that was put last is shown by a name of its own, and all go backward together."""


def train(model, loader, optimizer):
    for batch in loader:
        losses = []
        for head in model.heads:
            losses.append(head(batch.cuda()).sum())
            last = losses[-1]
            print(last.item())
        optimizer.zero_grad()
        sum(losses).backward()
        optimizer.step()
