"""The gradient is asked for this round's picture only; the clamps of all rounds before hang on it."""

import torch


def attack(encode, picture, rounds, step, eps):
    worse = picture.clone().detach() + (torch.rand_like(picture) * 2 - 1).cuda() * eps
    for _ in range(rounds):
        worse.requires_grad_(True)  # expect: GPU103
        loss = encode(worse).norm()
        (grad,) = torch.autograd.grad(loss, [worse])
        worse = worse - grad.detach().sign() * step
        worse = torch.minimum(torch.maximum(worse, picture - eps), picture + eps)
        worse.grad = None
    return worse
