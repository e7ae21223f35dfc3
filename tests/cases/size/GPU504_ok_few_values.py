import torch


def train(net, loader, opt, meters):
    """A handful of losses is no loop over elements; rows of different lengths are cut before they are copied."""
    for x, y in loader:
        losses = net(x.cuda(), y.cuda())
        sum(losses.values()).backward()
        opt.step()
        opt.zero_grad()
        for name, value in losses.items():
            meters[name].append(value.item())


@torch.no_grad()
def cut(net, loader, device):
    net.eval()
    rows = []
    for x, lengths in loader:
        out = net(x.to(device)).float()
        for i, n in enumerate(lengths):
            rows.append(out[i, :n].cpu())
    return rows


@torch.no_grad()
def moved_first(net, loader, device):
    net.eval()
    rows = []
    for x, names in loader:
        out = net(x.to(device)).sigmoid().cpu()
        for i, name in enumerate(names):
            rows.append((name, out[i].item()))
    return rows


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
