import torch


def train(model, loader, optimizer, scale):
    seen = 0
    for batch in loader:
        optimizer.zero_grad()
        loss = model.forward_loss(batch)
        if isinstance(loss, tuple):
            seen += loss[1]
            loss = loss[0]
        loss.backward()
        optimizer.step()
        torch.cuda.nvtx.range_pop()
    return seen * scale
