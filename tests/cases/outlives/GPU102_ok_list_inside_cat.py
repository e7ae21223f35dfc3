"""Joined lists that are short, on the host, of one batch, or computed with where they are."""

import torch


@torch.no_grad()
def logits(model: torch.nn.Module, loader):
    return torch.cat([model(x.cuda()).cpu() for x in loader])


@torch.no_grad()
def views(model: torch.nn.Module, image):
    return torch.stack([model(part.cuda()) for part in (image, image.flip(-1))]).mean(0).cpu()


@torch.no_grad()
def members(models, x):
    return torch.stack([model(x.cuda()) for model in models]).cpu()


@torch.no_grad()
def crops_of_each(model: torch.nn.Module, loader):
    kept = []
    for crops, _ in loader:
        scores = torch.stack([model(crop.cuda()) for crop in crops])
        kept.append(scores.mean(0).cpu())
    return torch.cat(kept)


@torch.no_grad()
def bank(model: torch.nn.Module, loader, queries):
    keys = torch.cat([model(x.cuda()) for x in loader])
    return (queries.cuda() @ keys.T).topk(5).indices.cpu()


@torch.no_grad()
def pieces(model: torch.nn.Module, signal: torch.Tensor, length):
    signal = signal.cuda()
    return torch.cat([model(signal[:, a : a + length]) for a in range(0, signal.size(1), length)], 1).cpu()


@torch.no_grad()
def losses(model: torch.nn.Module, loader):
    return torch.stack([torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()) for x, y in loader]).mean().cpu()


@torch.no_grad()
def in_chunks(model: torch.nn.Module, x, batch_size=64):
    return torch.cat([model(part) for part in x.split(batch_size)])


@torch.no_grad()
def in_named_chunks(model: torch.nn.Module, x, batch_size=64):
    found = []
    for part in torch.split(x, batch_size):
        found.append(model(part))
    return torch.cat(found)
