"""What only a network is asked for is asked of another thing, by the name that this one goes by elsewhere."""

import torch


class Judge:
    def __init__(self, load, network: torch.nn.Module):
        self.network = network.cuda()
        self.ranks = load("ranks")

    def begin(self):
        scorer = self.network
        scorer.eval()

    def places(self, batches):
        scorer = self.ranks
        return [scorer(batch.cuda()).argmax(1).tolist() for batch in batches]
