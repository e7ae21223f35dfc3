"""An average that is written by `.data`, which takes the values and not the graph."""

import torch
from torch import nn
from torch.nn import functional as F


class Learner:
    def __init__(self, args, network):
        self.args = args
        self._network = network
        self.ema_decay = 0.99

    def _init_train(self, train_loader, optimizer):
        for epoch in range(self.args["epochs"]):
            losses = 0.0
            for i, (_, inputs, targets) in enumerate(train_loader):
                inputs, targets = inputs.to("cuda"), targets.to("cuda")
                output = self._network(inputs)
                loss = F.cross_entropy(output["logits"], targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses += loss.item()
                for param, param_ema in zip(
                    self._network.pets.parameters(), self._network.pets_emas.parameters()
                ):
                    param_ema.data = param_ema.data * self.ema_decay + param * (1.0 - self.ema_decay)
