"""What a round has simulated is let go of before the next one trains: once a round, not in every step."""

import gc

import torch


def simulate(net, seeds):
    with torch.no_grad():
        return [net(seed.cuda()) for seed in seeds]


def improve(net, optimizer, episodes):
    for episode in episodes:
        loss = net(episode).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def rounds(net, optimizer, batches, count):
    for _ in range(count):
        episodes = simulate(net, batches)
        improve(net, optimizer, episodes)
        del episodes
        gc.collect()
