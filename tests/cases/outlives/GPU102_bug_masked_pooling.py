"""Embeddings of texts: the hidden states of each batch, pooled with the mask, here or in a helper."""

import torch


def mean_pooling(output, mask):
    hidden = output[0]
    mask = mask.unsqueeze(-1).expand(hidden.size()).float()
    return torch.sum(hidden * mask, 1) / torch.clamp(mask.sum(1), min=1e-9)


@torch.no_grad()
def with_a_helper(model: torch.nn.Module, loader):
    kept = []
    for batch in loader:
        batch = {name: value.to("cuda") for name, value in batch.items()}
        kept.append(mean_pooling(model(**batch), batch["attention_mask"]))  # low: GPU102
    return torch.cat(kept).cpu()


@torch.no_grad()
def in_place(model: torch.nn.Module, loader):
    kept = []
    for batch in loader:
        batch = batch.to("cuda")
        hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        pooled = (hidden * mask).sum(dim=1)
        kept.append(pooled)  # low: GPU102
    return torch.cat(kept).cpu()


@torch.no_grad()
def beside_the_rest(model: torch.nn.Module, prototypes, loader):
    kept, chosen = [], []
    for batch in loader:
        out = model(batch["x"].cuda())
        kept.append(torch.cat([out, batch["extra"].cuda()], 1))  # low: GPU102
        chosen.append(torch.einsum("nd,kd->nk", out, prototypes))  # low: GPU102
    return torch.cat(kept).cpu(), torch.cat(chosen).cpu()
