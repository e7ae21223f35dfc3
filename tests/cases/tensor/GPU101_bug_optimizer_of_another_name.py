"""What is told to zero the gradients and to step is an optimizer, whatever it is called and whoever made it."""

import torch


def reconstruct(encoder, generator, make, distance, features, rounds):
    z = torch.zeros(1, 512, device="cuda", requires_grad=True)
    rule = make([z])
    history = []
    for _ in range(rounds):
        rule.zero_grad()
        loss = distance(features, encoder(generator(z)))
        history.append(loss)  # expect: GPU101
        loss.backward()
        rule.step()
    print(history)
    return z.detach()
