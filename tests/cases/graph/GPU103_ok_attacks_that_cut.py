"""Each round starts from a picture without a graph, or its steps are to be differentiated."""

import torch


def detached(encode, picture, rounds, step, eps):
    worse = picture.clone().cuda()
    for _ in range(rounds):
        worse.requires_grad_()
        (grad,) = torch.autograd.grad(encode(worse).norm(), [worse])
        worse = worse.detach() - step * grad.sign()
        worse = torch.clamp(worse, picture - eps, picture + eps)
    return worse


def without_grad(encode, picture, rounds, step, eps):
    worse = picture.clone().cuda()
    for _ in range(rounds):
        worse.requires_grad_()
        (grad,) = torch.autograd.grad(encode(worse).norm(), worse)
        with torch.no_grad():
            worse = torch.clamp(worse - step * grad.sign(), picture - eps, picture + eps)
    return worse


def by_data(encode, picture, rounds, step, eps):
    worse = picture.clone().cuda()
    for _ in range(rounds):
        worse.requires_grad_()
        (grad,) = torch.autograd.grad(encode(worse).norm(), worse)
        worse = torch.clamp(worse.data - step * grad.sign(), picture - eps, picture + eps)
    return worse


def unrolled(encode, picture, rounds, step, eps):
    worse = picture.clone().cuda()
    for _ in range(rounds):
        worse.requires_grad_()
        (grad,) = torch.autograd.grad(encode(worse).norm(), worse, create_graph=True)
        worse = torch.clamp(worse - step * grad, picture - eps, picture + eps)
    return worse
