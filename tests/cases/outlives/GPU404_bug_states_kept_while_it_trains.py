"""A method hands out the live weights; another one keeps them while it trains, and puts them back at the end."""
import torch


class Process:
    def __init__(self, **networks):
        self.networks = {name: network.cuda() for name, network in networks.items()}

    def snapshot(self):
        return [network.state_dict() for network in self.networks.values()]  # expect: GPU404

    def load_snapshot(self, states):
        for network, state in zip(self.networks.values(), states):
            network.load_state_dict(state)

    def train_step(self, batch):
        raise NotImplementedError

    def fit(self, loader, epochs):
        best, least = self.snapshot(), float("inf")
        for _ in range(epochs):
            loss = sum(self.train_step(batch) for batch in loader)
            if loss < least:
                best, least = self.snapshot(), loss
        self.load_snapshot(best)
