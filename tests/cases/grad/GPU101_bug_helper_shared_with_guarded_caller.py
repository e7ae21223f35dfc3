"""One helper runs the batch for three callers: training, a guarded evaluation, and one that forgot the guard."""

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

    def evaluate(self):
        self.network.eval()
        losses = []
        with torch.no_grad():
            for batch in self.loaders["valid"]:
                loss, _ = self.predict_and_compare(batch)
                losses.append(loss)
        return torch.stack(losses).mean()

    def test(self):
        self.network.eval()
        losses = []
        for batch in self.loaders["test"]:
            loss, scores = self.predict_and_compare(batch)  # maybe: GPU201
            losses.append(loss)  # expect: GPU101
        return torch.stack(losses).mean()
