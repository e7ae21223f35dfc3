"""The tuple is turned into numbers before it is kept."""

import torch
from recommenders import build_model


class Runner:
    def __init__(self, config):
        self.model = build_model(config).to("cuda")
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])

    def epoch(self, loader):
        self.model.train()
        every = []
        for interaction in loader:
            interaction = interaction.to("cuda")
            self.optimizer.zero_grad()
            losses = self.model.calculate_loss(interaction)
            loss = sum(losses)
            loss.backward()
            self.optimizer.step()
            losses = tuple(map(float, losses))
            every.append(losses)
        return [sum(column) / len(column) for column in zip(*every)]
