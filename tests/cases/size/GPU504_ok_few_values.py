import torch


@torch.no_grad()
def decode(net, ids, steps, device):
    """Each token needs the one before it."""
    for i in range(steps):
        logits = net(ids.to(device))
        token = logits[:, -1].argmax(-1)
        if token.item() == 2:
            break
        ids = torch.cat([ids, token.cpu()[:, None]], 1)
    return ids
