import torch


def train(model, loader, optimizer, scale):
    torch.manual_seed(0)
    seen = 0
    for batch in loader:
        optimizer.zero_grad()
        loss = model.forward_loss(batch)
        if isinstance(loss, tuple):
            seen += loss[1]
            loss = loss[0]
        loss.backward()
        optimizer.step()
    return seen * scale
