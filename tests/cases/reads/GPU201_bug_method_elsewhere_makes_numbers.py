"""A method of another file puts the network into eval mode and makes numbers of what it gives; whoever evaluates calls it."""
# file: tagging.py
import torch
from torch import nn


class Tagger:
    def __init__(self, words, tags):
        self.model = nn.LSTM(words, tags, 4).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def tags(self, batch):
        return batch

    def predict(self, batch):
        self.model.eval()
        scores, _ = self.model(batch.cuda())  # expect: GPU201
        return [row for row in scores.argmax(-1).tolist()]
# file: run.py
import torch
from data import loader
from tagging import Tagger


def evaluate(path):
    tagger = Tagger(300, 17)
    found = []
    for batch in loader(path):
        found += tagger.predict(batch)  # expect: GPU201
    return found
