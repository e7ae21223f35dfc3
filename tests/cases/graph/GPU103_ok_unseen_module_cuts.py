"""A network from elsewhere is given its own state again, and backward runs without retain_graph: it cuts the state
itself, or the second backward would have failed."""

import torch
from networks import build


def train(settings, loader):
    network = build(settings).cuda()
    optimizer = torch.optim.Adam(network.parameters())
    memory = ()
    for tokens, targets in loader:
        loss, *memory = network(tokens.cuda(), targets.cuda(), *memory)
        loss = loss.float().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def train_pairs(settings, loader):
    network = build(settings).cuda()
    optimizer = torch.optim.Adam(network.parameters())
    state = None
    for tokens, targets in loader:
        scores, state = network(tokens.cuda(), state)
        loss = torch.nn.functional.cross_entropy(scores, targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
