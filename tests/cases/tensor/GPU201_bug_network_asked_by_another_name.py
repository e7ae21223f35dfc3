"""What only a network is asked for is asked of a name that stands for it; and of another thing by the same name elsewhere."""

import torch


class Judge:
    def __init__(self, load):
        self.scorer = load("scorer")
        self.ranks = load("ranks")

    def scores(self, batches):
        scorer = self.scorer
        scorer.cuda().eval()
        found = []
        for batch in batches:
            found.append(self.scorer(batch.cuda()).argmax(1).tolist())  # expect: GPU201
        return found

    def places(self, batches):
        found = []
        for batch in batches:
            scorer = self.ranks
            found.append(scorer(batch.cuda()).argmax(1).tolist())
        return found
