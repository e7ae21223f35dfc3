import numpy as np
import torch
from torch import nn


class Scores:
    def __init__(self, several=False):
        self.squash = nn.Softmax(dim=-1) if several else nn.Sigmoid()
        self.smooth = nn.AvgPool1d(5, stride=1, padding=2)

    def rank(self, raw_scores, docs):
        ranked = []
        for raw, doc in zip(raw_scores, docs):
            score = self.squash(raw)[-1]
            doc.score = score.detach().cpu().numpy().tolist()
            ranked.append(doc)
        return ranked

    def peaks(self, attention):
        for row in attention:
            yield self.smooth(row[None]).argmax(-1).item()


def pad(features, length):
    padding = nn.ZeroPad2d((0, 0, 0, length - len(features)))
    return padding(torch.from_numpy(np.asarray(features))).numpy()


def similarity(a, b):
    return nn.CosineSimilarity(dim=0)(torch.tensor(a), torch.tensor(b)).item()
