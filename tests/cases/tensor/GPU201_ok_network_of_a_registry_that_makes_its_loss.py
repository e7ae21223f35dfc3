"""A function of the program takes a network out of a registry, which is not seen; who evaluates it switches grad off."""

import hydra
import torch


def build(settings):
    return hydra.utils.instantiate(settings)


def main(settings, loader, others):
    model = build(settings).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        total = 0.0
        for batch in loader:
            loss = model.compute_loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            right = sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in others)
        print(total, right)
        model.train()
