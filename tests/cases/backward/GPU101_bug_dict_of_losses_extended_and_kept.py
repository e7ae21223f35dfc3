"""A dict of losses is given the total as well and goes into a list, after the backward."""

import json

import torch
import torch.nn.functional as F


def losses_of(net, batch):
    out = net(batch["image"].cuda())
    return {
        "depth": F.l1_loss(out["depth"], batch["depth"].cuda()),
        "normal": 1 - F.cosine_similarity(out["normal"], batch["normal"].cuda()).mean(),
    }


def train(net: torch.nn.Module, loader, opt, epochs):
    net.cuda()
    for epoch in range(epochs):
        rows = []
        for batch in loader:
            losses = losses_of(net, batch)
            total = losses["depth"] + 0.1 * losses["normal"]
            opt.zero_grad()
            total.backward()
            opt.step()
            losses.update(total=total, size=len(batch["image"]))
            rows.append(losses)  # expect: GPU101
        with open(f"epoch{epoch}.json", "w") as stream:
            json.dump([{k: float(v) for k, v in row.items()} for row in rows], stream)
