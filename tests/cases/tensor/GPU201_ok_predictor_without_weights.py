"""A scoring script of the same form, whose predictor is a table of counts: `predict_batch` of no network."""

import csv
import pickle
import sys

import torch

from sentiment.reading import batches_of

DEVICE = torch.device("cuda")


class Counts:
    def __init__(self, table):
        self.table = torch.as_tensor(table, device=DEVICE)

    def predict_batch(self, tokens, lengths):
        return self.table[tokens].sum(1) / lengths.to(DEVICE).unsqueeze(1)


def score(path, counts):
    with open(counts, "rb") as stream:
        predictor = Counts(pickle.load(stream))
    writer = csv.writer(sys.stdout)
    for ids, tokens, lengths in batches_of(path, 128):
        probs = predictor.predict_batch(tokens.cuda(), lengths).softmax(-1)
        for name, row in zip(ids, probs.cpu().tolist()):
            writer.writerow([name, *row])


if __name__ == "__main__":
    score(*sys.argv[1:3])
