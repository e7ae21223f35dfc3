"""A method of a class whose base stands in an installed library: it calls the method as it likes, under a guard maybe."""

import torch
from somewhere.evaluation import BatchScorer


class Ranker(BatchScorer):
    def __init__(self, network, device):
        super().__init__()
        self.network = network.to(device)
        self.device = device

    def score_batch(self, batch):
        self.network.eval()
        scores = self.network(batch.to(self.device))  # low: GPU201
        return torch.topk(scores, 10).indices.cpu().tolist()
