"""The same helper for a training step and two evaluations, both of them guarded."""

import torch
from torch import nn


class Experiment:
    def __init__(self, network: nn.Module, loaders):
        self.network = nn.DataParallel(network).cuda()
        self.loaders = loaders
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)

    def predict_and_compare(self, batch):
        inputs, labels = batch
        scores = self.network(inputs.cuda())
        return self.criterion(scores, labels.cuda()), scores

    def train(self):
        self.network.train()
        for batch in self.loaders["train"]:
            loss, _ = self.predict_and_compare(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        self.network.eval()
        losses = [self.predict_and_compare(batch)[0] for batch in self.loaders["valid"]]
        return torch.stack(losses).mean()

    def test(self):
        self.network.eval()
        total = 0.0
        for batch in self.loaders["test"]:
            with torch.inference_mode():
                loss, _ = self.predict_and_compare(batch)
            total += loss
        return total
