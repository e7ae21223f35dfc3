"""A round is a rollout and an update, each with loops of its own: the cache is emptied once between them."""

import gc

import torch
import torch.nn.functional as F


class Tuner:
    def __init__(self, policy, optimizer, scenes):
        self.policy, self.optimizer, self.scenes = policy.cuda(), optimizer, scenes

    @torch.no_grad()
    def collect(self, loader):
        return [self.policy(scene.cuda()) for scene in loader]

    def update(self, rollouts, scores):
        total = 0.0
        for rollout, score in zip(rollouts, scores):
            loss = F.mse_loss(self.policy(rollout), score)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total

    def fit(self, loader, scores, rounds):
        for number in range(rounds):
            rollouts = self.collect(loader)
            torch.cuda.empty_cache()
            told = self.update(rollouts, scores)
            del rollouts
            gc.collect()
            torch.cuda.empty_cache()
            print(number, told)


def epoch(policy, optimizer, scenes, scores):
    policy.eval()
    with torch.no_grad():
        rollouts = policy(scenes.cuda())
    torch.cuda.empty_cache()
    policy.train()
    for rollout, score in zip(rollouts, scores):
        loss = F.mse_loss(policy(rollout), score)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    del rollouts
    gc.collect()
    torch.cuda.empty_cache()
