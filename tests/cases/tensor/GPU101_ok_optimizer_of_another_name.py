"""An environment steps as well, but has no gradients; the losses are numbers."""

import torch


def reconstruct(encoder, make, distance, features, world, rounds):
    z = torch.zeros(1, 512, device="cuda", requires_grad=True)
    rule = make([z])
    history = []
    for _ in range(rounds):
        rule.zero_grad()
        world.step(z.detach())
        loss = distance(features, encoder(z))
        history.append(loss.item())
        loss.backward()
        rule.step()
    print(history)
    return z.detach()
