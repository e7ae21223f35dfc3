"""What only a network is asked for is asked of a name that stands for it."""

import torch


class Judge:
    def __init__(self, load):
        self.scorer = load("scorer")

    def scores(self, batches):
        scorer = self.scorer
        scorer.cuda().eval()
        found = []
        for batch in batches:
            found.append(self.scorer(batch.cuda()).argmax(1).tolist())  # expect: GPU201
        return found
