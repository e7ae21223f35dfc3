"""A method of the base class, in another file, goes backward through the loss that it is handed; the loss is computed with
weights that are detached."""
# file: base.py
import torch


class Learner:
    def weighted(self, features, weights):
        found = self.density(self.critic(features))
        return -(weights * found).mean(), found.mean()

    def improve(self, optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# file: critic.py
import torch
from base import Learner


class Critic(Learner):
    def learn(self, batch):
        features, weights = batch["features"].cuda(), batch["weights"].cuda().detach()
        critic_loss, value = self.weighted(features, weights)
        self.improve(self.optimizer, critic_loss)
        figures = {}
        figures["Critic Loss"] = critic_loss  # low: GPU101
        figures["Value"] = value.item()
        figures["Weight"] = weights.mean().item()
        figures["Feature"] = features.mean().item()
        return critic_loss.item(), figures
